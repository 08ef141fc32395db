"""Webhooks are made, renewed and revoked on their pages, over the API and in the admin."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import person
from apps.jobs.models import Hook, Job
from apps.jobs.services import hooks
from apps.runs.models import Run
from tests.factories import HookFactory, JobFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pages": {"type": "integer", "default": 2},
        "site": {"type": "string"},
        "key": {"type": "string", "writeOnly": True},
    },
}


@pytest.fixture
def job() -> Job:
    return JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA), parameters={"site": "it's; rm -rf"})


@pytest.fixture
def operator(job: Job) -> User:
    user = UserFactory(username="ann")
    grant(user, "operator", job)
    return user


@pytest.fixture
def page(operator: User) -> Client:
    client = Client()
    client.force_login(operator, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


def form(**more: Any) -> dict[str, Any]:
    return {"name": "shop", "kind": "url", "per_minute": "60", "mapping": "", **more}


def address_in(answer: Any) -> str:
    found = re.search(r"/hooks/[A-Za-z0-9_-]{43}/", answer.content.decode())
    assert found, answer.content
    return found[0]


def test_a_new_hook_is_shown_once_with_what_opens_it(page, job):
    answer = page.post(f"/jobs/{job.pk}/hooks/new/", form(kind="hmac", mapping="pages = event.n\n\nsite=event.hosts.0"))
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    address = address_in(answer)
    hook = Hook.objects.get()
    assert (hook.kind, hook.mapping) == ("hmac", {"pages": "event.n", "site": "event.hosts.0"})
    assert address.startswith(f"/hooks/{hook.token_prefix}")
    listed = page.get(f"/jobs/{job.pk}/hooks/").content.decode()
    assert "shop" in listed
    assert address not in listed
    key = re.search(r'id="hook-key" value="([0-9a-f]{64})"', answer.content.decode())
    assert key
    kept = {**Hook.objects.values()[0], "sealed_key": bytes(hook.sealed_key)}
    assert key[1] not in str(kept)
    assert address.split("/")[2] not in str(kept)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mapping", ["", "site = event.shop.site\npages = event.shop.n"])
@pytest.mark.parametrize("kind", ["url", "hmac"])
def test_the_lines_of_the_page_call_the_hook(page, job, kind, mapping, live_server):
    host = live_server.url.removeprefix("http://")
    answer = page.post(f"/jobs/{job.pk}/hooks/new/", form(kind=kind, mapping=mapping), headers={"host": host})
    done = subprocess.run(["sh", "-c", answer.context["lines"]], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["state"] == "queued", done
    assert Run.objects.get().spec["parameters"] == {"pages": 2, "site": "it's; rm -rf"}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"kind": "none"}, "kind"),
        ({"per_minute": "0"}, "per_minute"),
        ({"per_minute": "6001"}, "per_minute"),
        ({"per_minute": "x"}, "per_minute"),
        ({"mapping": "pages"}, "mapping"),
        ({"mapping": "pages = a\npages = b"}, "mapping"),
        ({"mapping": "pages = "}, "mapping"),
        ({"mapping": "pages = a..b"}, "mapping"),
        ({"mapping": "nothing = a"}, "mapping"),
        ({"mapping": "pages = " + "a" * 201}, "mapping"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(page, job, wrong, field):
    answer = page.post(f"/jobs/{job.pk}/hooks/new/", form(**wrong))
    assert answer.status_code == 422
    assert answer.context["form"].errors[field]
    assert not Hook.objects.exists()


def test_a_name_is_taken_once_and_free_again_after_the_revocation(page, job):
    assert page.post(f"/jobs/{job.pk}/hooks/new/", form()).status_code == 200
    assert page.post(f"/jobs/{job.pk}/hooks/new/", form()).status_code == 422
    hook = Hook.objects.get()
    assert page.post(f"/jobs/{job.pk}/hooks/{hook.pk}/revoke/").status_code == 302
    assert page.post(f"/jobs/{job.pk}/hooks/new/", form()).status_code == 200
    assert Hook.objects.get().pk != hook.pk


def test_renewing_closes_the_old_address_and_opens_a_new_one(page, job):
    old = address_in(page.post(f"/jobs/{job.pk}/hooks/new/", form()))
    hook = Hook.objects.get()
    new = address_in(page.post(f"/jobs/{job.pk}/hooks/{hook.pk}/renew/"))
    assert old != new
    assert Client().post(old, b"{}", "application/json").status_code == 404
    assert Client().post(new, b"{}", "application/json").status_code == 202


def test_a_revoked_hook_stays_closed(page, job, operator, now):
    address = address_in(page.post(f"/jobs/{job.pk}/hooks/new/", form()))
    hook = Hook.objects.get()
    for _ in range(2):
        page.post(f"/jobs/{job.pk}/hooks/{hook.pk}/revoke/")
    assert Client().post(address, b"{}", "application/json").status_code == 404
    with pytest.raises(hooks.HookRevoked):
        hooks.renew_token(hook=hook, by=person(operator), now=now)
    assert "revoked" in page.get(f"/jobs/{job.pk}/hooks/").content.decode()


def test_who_changed_what_is_noted_without_secrets(page, job, operator):
    address = address_in(page.post(f"/jobs/{job.pk}/hooks/new/", form()))
    hook = Hook.objects.get()
    page.post(f"/jobs/{job.pk}/hooks/{hook.pk}/renew/")
    page.post(f"/jobs/{job.pk}/hooks/{hook.pk}/revoke/")
    notes = LogEntry.objects.filter(object_id=str(hook.pk)).order_by("pk")
    assert [note.change_message for note in notes] == ["hook_created", "hook_renewed", "hook_revoked"]
    assert {note.user_id for note in notes} == {operator.pk}
    assert address.split("/")[2] not in json.dumps(list(notes.values()), default=str)


def test_a_hook_of_another_job_is_not_there(page, job):
    other = HookFactory()
    for what in ("renew", "revoke"):
        assert page.post(f"/jobs/{job.pk}/hooks/{other.pk}/{what}/").status_code == 404
        assert page.post(f"/jobs/{other.job_id}/hooks/{other.pk}/{what}/").status_code == 404
    other.refresh_from_db()
    assert other.revoked_at is None


def test_only_who_may_schedule_the_job_sees_its_hooks(job):
    runner = UserFactory()
    grant(runner, "runner", job)
    client = Client()
    client.force_login(runner, backend="allauth.account.auth_backends.AuthenticationBackend")
    assert client.get(f"/jobs/{job.pk}/hooks/").status_code == 404
    assert "/hooks/" not in client.get(f"/jobs/{job.pk}/").content.decode()


def test_a_job_has_no_more_than_its_share_of_hooks(job, operator, now):
    for _ in range(50):
        HookFactory(job=job)
    with pytest.raises(hooks.TooManyHooks):
        hooks.create_hook(job=job, by=person(operator), now=now, name="one more")


def test_a_long_list_costs_no_more_questions_than_a_short_one(
    page, job, operator, django_assert_max_num_queries: DjangoAssertNumQueries
):
    for _ in range(30):
        HookFactory(job=job, created_by=operator)
    with django_assert_max_num_queries(12):
        page.get(f"/jobs/{job.pk}/hooks/")


# -- the API ------------------------------------------------------------------------------------------------------


@pytest.fixture
def api(operator: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(operator)
    return client


def test_the_api_makes_lists_renews_and_revokes(api, job):
    address = f"/api/v1/jobs/{job.pk}/hooks/"
    made = api.post(address, {"name": "shop", "mapping": {"pages": "n"}})
    assert made.status_code == 201
    assert re.fullmatch(r"http://testserver/hooks/[A-Za-z0-9_-]{43}/", made.json()["url"])
    assert re.fullmatch(r"[0-9a-f]{64}", made.json()["key"])
    listed = api.get(address).json()
    assert [row["name"] for row in listed["results"]] == ["shop"]
    assert not {"url", "key"} & listed["results"][0].keys()
    hook = made.json()["id"]
    renewed = api.post(f"{address}{hook}/renew/")
    assert renewed.status_code == 200
    assert renewed.json()["url"] != made.json()["url"]
    assert api.delete(f"{address}{hook}/").status_code == 204
    assert api.delete(f"{address}{hook}/").status_code == 204
    assert api.post(f"{address}{hook}/renew/").status_code == 409
    assert api.get(address).json()["results"][0]["revoked_at"]


def test_a_hook_without_signature_has_no_key(api, job):
    made = api.post(f"/api/v1/jobs/{job.pk}/hooks/", {"name": "shop", "kind": "url"})
    assert made.json()["key"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "a", "kind": "x"}, "kind"),
        ({"name": "a", "per_minute": 0}, "per_minute"),
        ({"name": "a", "per_minute": 10**9}, "per_minute"),
        ({"name": "a", "mapping": []}, "mapping"),
        ({"name": "a", "mapping": {"pages": ["a"]}}, "mapping.pages"),
        ({"name": "a", "mapping": {"pages": {"a": "b"}}}, "mapping.pages"),
        ({"name": "a", "mapping": {"pages": "a..b"}}, "mapping.pages"),
        ({"name": "a", "mapping": {"pages": "a\u202eb"}}, "mapping.pages"),
        ({"name": "a", "mapping": {"no": "b"}}, "mapping.no"),
        ({"name": "a\tb"}, "name"),
        ({"name": "a", "token": "mine"}, "token"),
    ],
)
def test_the_api_says_at_which_field_it_is_wrong(api, job, body, field):
    answer = api.post(f"/api/v1/jobs/{job.pk}/hooks/", body)
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["fields"]) == [field]
    assert not Hook.objects.exists()


def test_the_admin_shows_hooks_without_what_opens_them_and_revokes(job):
    admin = UserFactory(is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(admin, backend="allauth.account.auth_backends.AuthenticationBackend")
    hook = hooks.create_hook(job=job, by=person(admin), now=job.created_at, name="shop", kind="hmac")[0]
    shown = client.get(f"/admin/jobs/hook/{hook.pk}/change/").content.decode()
    assert "shop" in shown
    assert hook.token_digest not in shown
    assert client.get("/admin/jobs/hook/add/").status_code == 403
    answer = client.post("/admin/jobs/hook/", {"action": "revoke", "_selected_action": [hook.pk]})
    assert answer.status_code == 302
    hook.refresh_from_db()
    assert hook.revoked_at is not None
