"""The frame: the way in, language and theme, refusals, banners, health."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.test.utils import override_settings
from django.urls import reverse

from apps.accounts.models import User
from tests.apps.panel.conftest import SignIn
from tests.factories import AdminFactory, JobFactory, NodeFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db

OPEN_PAGES = ("/runs/", "/runs/rows/?ids=1", "/runs/1/", "/spiders/", "/spiders/x/", "/jobs/", "/jobs/new/", "/jobs/1/")


@pytest.mark.parametrize("path", [*OPEN_PAGES, "/jobs/1/edit/", "/jobs/1/run/", "/jobs/parameters/?spider=x"])
def test_a_stranger_is_asked_to_sign_in(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/?next=")


def test_the_admin_has_no_door_of_its_own(client: Client) -> None:
    answer = client.get("/admin/login/?next=/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("path", ["/accounts/password/reset/", "/accounts/email/", "/accounts/confirm-email/"])
def test_pages_that_need_mail_are_not_offered(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_nobody_signs_up(client: Client) -> None:
    answer = client.post("/accounts/signup/", {"username": "eve", "password1": "correct horse battery"})
    assert not User.objects.filter(username="eve").exists()
    assert answer.status_code == 200


def test_a_wrong_password_is_said_on_the_page(client: Client) -> None:
    AdminFactory(username="ada", password="correct horse battery")
    answer = client.post("/accounts/login/", {"login": "ada", "password": "wrong"})
    assert answer.status_code == 200
    assert "not correct" in answer.content.decode()


def test_the_start_page_is_the_run_list(admin_page: Client) -> None:
    assert admin_page.get("/")["Location"] == "/runs/"


def test_only_staff_are_shown_the_way_to_the_admin(sign_in: SignIn) -> None:
    assert reverse("admin:index") in sign_in(AdminFactory()).get("/runs/").content.decode()
    assert reverse("admin:index") not in sign_in(UserFactory()).get("/runs/").content.decode()


def test_language_and_theme_follow_the_person_to_another_browser(sign_in: SignIn) -> None:
    ada = UserFactory()
    sign_in(ada).post("/preferences/", {"language": "zh-hans", "theme": "dark", "next": "/jobs/"})
    page = sign_in(User.objects.get(pk=ada.pk)).get("/runs/").content.decode()
    assert '<html lang="zh-hans" data-theme="dark" data-bs-theme="dark">' in page


def test_language_and_theme_hold_on_the_sign_in_page(client: Client) -> None:
    client.post("/preferences/", {"language": "zh-hans"})
    client.post("/preferences/", {"theme": "dark"})
    page = client.get("/accounts/login/").content.decode()
    assert '<html lang="zh-hans" data-theme="dark" data-bs-theme="dark">' in page


def test_the_theme_of_the_system_is_left_to_the_browser(client: Client) -> None:
    assert '<html lang="en" data-theme="system">' in client.get("/accounts/login/").content.decode()


def test_nonsense_preferences_change_nothing(sign_in: SignIn) -> None:
    ada = UserFactory()
    sign_in(ada).post("/preferences/", {"language": "xx", "theme": "<script>"})
    ada.refresh_from_db()
    assert (ada.language, ada.theme) == ("", "system")


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/x", "javascript:alert(1)", ""])
def test_preferences_never_lead_to_another_site(client: Client, target: str) -> None:
    assert client.post("/preferences/", {"theme": "dark", "next": target})["Location"] == "/"


@pytest.mark.parametrize("path", ["//elsewhere.org/x", "///elsewhere.org/x", "/%2F/elsewhere.org/x"])
def test_a_path_of_ours_is_never_read_as_another_site(client: Client, path: str) -> None:
    target = f"http://testserver{path}"
    for answer in (
        client.post("/preferences/", {"theme": "dark", "next": target}),
        client.post("/preferences/", {"theme": "dark"}, headers={"Referer": target}),
    ):
        assert not answer["Location"].startswith("//")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "Europe", "../../etc/passwd", "zone.tab"])
def test_a_zone_this_machine_does_not_know_costs_nothing(sign_in: SignIn, zone: str) -> None:
    assert sign_in(UserFactory(time_zone=zone)).get("/runs/").status_code == 200


def test_pages_take_only_scripts_and_styles_of_their_own(admin_page: Client) -> None:
    answer = admin_page.get("/runs/")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in answer.content.decode()
    assert " onclick=" not in answer.content.decode()


def test_what_is_not_there_has_a_page(admin_page: Client) -> None:
    answer = admin_page.get("/jobs/99999999/")
    assert answer.status_code == 404
    assert "This page is not there" in answer.content.decode()


def test_a_refusal_is_a_message_on_the_page_the_button_was_on(admin_page: Client) -> None:
    run = RunFactory(state="succeeded")
    answer = admin_page.post(reverse("runs:stop", args=(run.pk,)), {"next": "/jobs/"}, follow=True)
    assert answer.redirect_chain == [("/jobs/", 302)]
    assert "is over already" in answer.content.decode()


def test_htmx_gets_a_refusal_as_a_message(admin_page: Client) -> None:
    run = RunFactory(state="succeeded")
    answer = admin_page.post(reverse("runs:stop", args=(run.pk,)), HTTP_HX_REQUEST="true")
    assert answer.status_code == 409
    assert answer["HX-Retarget"] == "#messages"
    assert "is over already" in answer.content.decode()


def test_without_a_worker_the_page_says_so(admin_page: Client) -> None:
    assert "No worker is alive" in admin_page.get("/runs/").content.decode()


def test_runs_without_isolation_are_announced(admin_page: Client, now: datetime) -> None:
    NodeFactory(name="bare", isolated=False, heartbeat_at=now)
    page = admin_page.get("/runs/").content.decode()
    assert "Runs are not isolated: bare" in page
    assert "No worker is alive" not in page


def test_a_silent_node_is_no_worker(admin_page: Client, now: datetime) -> None:
    NodeFactory(isolated=True, heartbeat_at=now - timedelta(seconds=31))
    assert "No worker is alive" in admin_page.get("/runs/").content.decode()


def test_a_nodes_trouble_is_on_every_page(admin_page: Client, now: datetime) -> None:
    NodeFactory(name="full", isolated=True, heartbeat_at=now, trouble="The disk <b>is full</b>.")
    page = admin_page.get("/jobs/").content.decode()
    assert "The disk &lt;b&gt;is full&lt;/b&gt;." in page


def test_the_process_says_it_is_up(client: Client, django_assert_num_queries: object) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_the_panel_is_ready_with_a_living_worker(client: Client, now: datetime) -> None:
    NodeFactory(heartbeat_at=now)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert set(answer.json()["checks"].values()) == {"ok"}
    assert set(answer.json()["checks"]) == {"database", "migrations", "broker", "worker"}


def test_the_panel_is_not_ready_without_a_worker(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["worker"] != "ok"
    assert answer.json()["checks"]["database"] == "ok"


def test_the_panel_is_not_ready_without_its_broker(client: Client, now: datetime, monkeypatch: object) -> None:
    NodeFactory(heartbeat_at=now)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["broker"] == "does not answer"


def test_hostile_names_are_only_text(admin_page: Client) -> None:
    job = JobFactory(name="<img src=x onerror=alert(1)>")
    RunFactory(job=job)
    for path in ("/runs/", "/jobs/", f"/jobs/{job.pk}/"):
        assert "<img src=x" not in admin_page.get(path).content.decode()


@pytest.mark.parametrize("page", ["/admin/", "/admin/jobs/job/", "/admin/nowhere/", "/api/docs/"])
def test_pages_of_others_making_lead_to_no_other_site_either(admin_page: Client, page: str) -> None:
    policy = admin_page.get(page)["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self'" in policy
    assert "http" not in policy
    assert "*" not in policy


@pytest.fixture
def fresh_count() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def _failures(client: Client, headers: list[str]) -> str:
    for turn, header in enumerate(headers):
        typed = {"login": f"nobody{turn}", "password": "wrong"}
        answer = client.post("/accounts/login/", typed, headers={"X-Forwarded-For": header})
    return str(answer.content.decode())


@pytest.mark.usefixtures("fresh_count")
def test_an_address_a_visitor_invents_does_not_start_a_new_count_of_failures(client: Client) -> None:
    assert "Too many failed" in _failures(client, [f"192.0.2.{n}" for n in range(11)])


@pytest.mark.usefixtures("fresh_count")
def test_behind_a_proxy_failures_are_counted_by_the_address_it_adds(client: Client) -> None:
    with override_settings(ALLAUTH_TRUSTED_PROXY_COUNT=1):
        assert "Too many failed" in _failures(client, [f"192.0.2.{n}, 198.51.100.1" for n in range(11)])
        assert "Too many failed" not in _failures(client, ["192.0.2.1, 198.51.100.2"])
