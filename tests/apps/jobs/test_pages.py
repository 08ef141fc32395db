"""Job pages: list, detail, form, running, deleting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.runs.states import State
from apps.spiders.models import Spider
from tests.factories import AdminFactory, JobFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["city"],
    "properties": {
        "city": {"type": "string", "title": "City", "minLength": 2},
        "pages": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "words": {"type": "array", "items": {"type": "string"}},
        "key": {"type": "string", "writeOnly": True},
    },
}
LIMITS = {"memory_mb": "256", "cpus": "0.5", "timeout_seconds": "60", "grace_seconds": "5", "priority": "3", "env": ""}


@pytest.fixture
def client_of(db: None) -> Callable[[User], Client]:
    def client_of(user: User) -> Client:
        client = Client()
        client.force_login(user, backend=BACKEND)
        return client

    return client_of


@pytest.fixture
def page(client_of: Callable[[User], Client]) -> Client:
    return client_of(AdminFactory())


@pytest.fixture
def spider(db: None) -> Spider:
    made: Spider = SpiderFactory(name="weather", titles={"en": "Weather"}, version__parameter_schema=SCHEMA)
    return made


def form(**more: Any) -> dict[str, Any]:
    return {"spider": "weather", "name": "Weather of Bonn", "p.city": "Bonn", "p.pages": "2", **LIMITS, **more}


def test_a_job_is_made_from_the_form(page: Client, spider: Spider) -> None:
    answer = page.post("/jobs/new/", form(env="REGION=eu\n\nMODE=a=b"))
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.pk}/"
    assert job.parameters == {"city": "Bonn", "pages": 2}
    assert (job.memory_mb, job.cpus, job.timeout_seconds, job.priority) == (256, 0.5, 60, 3)
    assert job.env == {"REGION": "eu", "MODE": "a=b"}


def test_save_and_run_leads_to_the_run(page: Client, spider: Spider) -> None:
    answer = page.post("/jobs/new/", form(run="1"))
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert run.spec["parameters"] == {"city": "Bonn", "pages": 2}


def test_every_fault_is_said_at_once_and_what_was_typed_stays(page: Client, spider: Spider) -> None:
    answer = page.post("/jobs/new/", form(name="", memory_mb="7", **{"p.city": "B", "p.pages": "12"}, env="no equals"))
    text = answer.content.decode()
    assert answer.status_code == 422
    assert not Job.objects.exists()
    assert "Nothing was saved yet" in text
    assert 'href="#id_p.city"' in text
    assert 'href="#id_memory_mb"' in text
    assert "Line 1 is not NAME=value." in text
    assert 'value="12"' in text


def test_a_name_that_is_taken_is_said_at_the_name(page: Client, spider: Spider) -> None:
    JobFactory(spider=spider, name="Weather of Bonn")
    answer = page.post("/jobs/new/", form())
    assert answer.status_code == 422
    assert 'href="#id_name"' in answer.content.decode()
    assert Job.objects.count() == 1


def test_secrets_go_in_and_never_come_out(page: Client, spider: Spider) -> None:
    page.post("/jobs/new/", form(**{"p.key": "hunter2hunter2"}))
    job = Job.objects.get()
    assert job.parameters == {"city": "Bonn", "pages": 2}
    assert list(job.secrets) == ["key"]
    for path in (f"/jobs/{job.pk}/", f"/jobs/{job.pk}/edit/", f"/jobs/{job.pk}/run/"):
        assert "hunter2" not in page.get(path).content.decode()
    page.post(f"/jobs/{job.pk}/edit/", form(name="Renamed"))
    job.refresh_from_db()
    assert (job.name, list(job.secrets)) == ("Renamed", ["key"])


def test_without_a_script_the_form_of_a_spider_is_asked_for(page: Client, spider: Spider) -> None:
    answer = page.post("/jobs/new/", {"spider": "weather", "choose": "1"})
    assert answer.status_code == 200
    assert 'name="p.city"' in answer.content.decode()
    assert "Nothing was saved" not in answer.content.decode()


def test_the_form_can_be_opened_with_a_spider_and_values(page: Client, spider: Spider) -> None:
    text = page.get(
        "/jobs/new/?spider=weather&param.city=Ulm&param.pages=7&param.words=a,b&param.key=x"
    ).content.decode()
    assert 'value="Ulm"' in text
    assert 'value="7"' in text
    assert 'value="a"' in text
    assert 'value="x"' not in text


def test_another_spider_keeps_what_both_ask_for(page: Client, spider: Spider) -> None:
    SpiderFactory(
        name="trains",
        version__parameter_schema={
            "type": "object",
            "properties": {"city": {"type": "string"}, "line": {"type": "string"}},
        },
        version__default_limits={"memory_mb": 1024},
    )
    typed = form(shown_spider="weather", name="My own name", timeout_seconds="77")
    text = page.post("/jobs/parameters/", {**typed, "spider": "trains"}).content.decode()
    assert 'value="Bonn"' in text
    assert 'name="p.pages"' not in text
    assert 'value="My own name"' in text
    assert 'value="77"' in text


def test_rearranging_the_form_is_no_attempt_to_save(page: Client, spider: Spider) -> None:
    answer = page.post("/jobs/new/", form(name="", p__switch="json"))
    assert answer.status_code == 200
    assert "Nothing was saved yet" not in answer.content.decode()
    assert "p__json" in answer.content.decode()


def test_run_now_runs_the_job_as_it_is(page: Client, spider: Spider) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})
    answer = page.post(f"/jobs/{job.pk}/run/")
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert run.spec["parameters"]["city"] == "Bonn"


def test_run_with_changes_changes_this_run_only(page: Client, spider: Spider) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})
    assert 'value="Ulm"' in page.get(f"/jobs/{job.pk}/run/?param.city=Ulm").content.decode()
    page.post(f"/jobs/{job.pk}/run/", {"with_changes": "1", "p.city": "Ulm"})
    job.refresh_from_db()
    assert Run.objects.get().spec["parameters"]["city"] == "Ulm"
    assert job.parameters == {"city": "Bonn"}


def test_run_with_wrong_changes_starts_nothing(page: Client, spider: Spider) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})
    answer = page.post(f"/jobs/{job.pk}/run/", {"with_changes": "1", "p.city": "U"})
    assert answer.status_code == 422
    assert not Run.objects.exists()


def test_a_job_is_deleted_after_a_question_and_its_runs_stay(page: Client) -> None:
    run = RunFactory(state=State.SUCCEEDED)
    name = run.job.name
    assert name in page.get(f"/jobs/{run.job_id}/delete/").content.decode()
    assert Job.objects.exists()
    page.post(f"/jobs/{run.job_id}/delete/")
    run.refresh_from_db()
    assert not Job.objects.exists()
    assert run.job_name == name


def test_a_job_page_shows_its_past(page: Client, now: datetime, spider: Spider) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"}, env={"REGION": "eu"})
    runs = [RunFactory(job=job, state=State.SUCCEEDED, started_at=now, finished_at=now) for _ in range(3)]
    text = page.get(f"/jobs/{job.pk}/").content.decode()
    for run in runs:
        assert f'id="run-{run.pk}"' in text
    assert text.count("<rect ") == 3
    assert "REGION" in text


def test_buttons_one_may_not_use_are_absent(client_of: Callable[[User], Client]) -> None:
    job = JobFactory()
    viewer, runner, developer = UserFactory(), UserFactory(), UserFactory()
    grant(viewer, "viewer", job)
    grant(runner, "runner", job)
    grant(developer, "developer", job)
    for user, may_run, may_edit in ((viewer, False, False), (runner, True, False), (developer, True, True)):
        for path in ("/jobs/", f"/jobs/{job.pk}/"):
            text = client_of(user).get(path).content.decode()
            assert (f'action="/jobs/{job.pk}/run/"' in text) is may_run
            assert (f"/jobs/{job.pk}/edit/" in text) is may_edit


def test_a_viewer_can_neither_change_nor_run(client_of: Callable[[User], Client]) -> None:
    job, viewer = JobFactory(), UserFactory()
    grant(viewer, "viewer", job)
    client = client_of(viewer)
    for method, path in (("get", "edit"), ("post", "edit"), ("get", "run"), ("post", "run"), ("post", "delete")):
        assert getattr(client, method)(f"/jobs/{job.pk}/{path}/").status_code == 404
    assert not Run.objects.exists()


def test_lists_go_on_by_name(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.jobs.views.showing.PAGE_SIZE", 2)
    spider = SpiderFactory()
    for name in ("b", "a", "d", "c~1"):
        JobFactory(spider=spider, name=name)
    first = page.get("/jobs/")
    assert [each.job.name for each in first.context["jobs"]] == ["a", "b"]
    second = page.get("/jobs/", {"after": first.context["next"]})
    assert [each.job.name for each in second.context["jobs"]] == ["c~1", "d"]
    assert second.context["next"] == ""


@pytest.mark.parametrize(
    "query", ["?after=~", "?after=x~999999999999999999999", "?q=%00", "?spider=%00", "?after=%00~1"]
)
def test_an_address_that_makes_no_sense_still_shows_a_list(page: Client, query: str) -> None:
    assert page.get(f"/jobs/{query}").status_code == 200


def test_pages_take_few_queries_however_many_rows(page: Client, now: datetime) -> None:
    job = JobFactory()
    for _ in range(12):
        RunFactory(job=job, state=State.SUCCEEDED, started_at=now, finished_at=now)
        JobFactory(spider=job.spider)
    for path in ("/jobs/", f"/jobs/{job.pk}/", f"/jobs/{job.pk}/edit/", f"/jobs/new/?spider={job.spider.name}"):
        page.get(path)
        with CaptureQueriesContext(connection) as captured:
            assert page.get(path).status_code == 200
        assert len(captured) <= 15, path


POLICIES = {
    "policies": "1",
    "retry_attempts": "3",
    "retry_causes": ["exit", "timeout"],
    "retry_backoff": "list",
    "retry_delay_seconds": "30s",
    "retry_factor": "2",
    "retry_cap_seconds": "1h",
    "retry_delays": "30s, 5m",
    "retry_jitter": "0.1",
    "retry_codes": "",
    "retry_never_codes": "2",
    "retry_items": "keep",
    "retry_infrastructure": "3",
    "on_node_lost": "retry",
    "repair_job": "",
    "overlap": "queue",
    "overlap_max": "4",
    "start_seconds": "",
    "idle_seconds": "10m",
    "total_seconds": "1h30m",
    "queue_seconds": "",
    "pause_seconds": "",
    "selector": "",
}


@pytest.mark.parametrize("door", ["/jobs/{}/edit/", "/admin/jobs/job/{}/change/"])
def test_both_forms_of_a_job_take_its_policies(page: Client, spider: Spider, door: str) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})

    answer = page.post(door.format(job.pk), form(**POLICIES))

    assert answer.status_code == 302, answer.content.decode()
    job.refresh_from_db()
    assert (job.overlap, job.overlap_max, job.idle_seconds, job.total_seconds) == ("queue", 4, 600, 5400)
    assert (job.retry["delays"], job.retry["causes"], job.retry["never_codes"]) == ([30, 300], ["exit", "timeout"], [2])


@pytest.mark.parametrize("door", ["/jobs/{}/edit/", "/admin/jobs/job/{}/change/"])
def test_faults_in_policies_unfold_their_sections(page: Client, spider: Spider, door: str) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})

    answer = page.post(door.format(job.pk), form(**POLICIES | {"retry_delays": "30s, soon", "total_seconds": "59s"}))

    text = answer.content.decode()
    assert answer.status_code == 422
    assert 'href="#id_retry_delays"' in text
    assert 'href="#id_total_seconds"' in text
    assert 'value="30s, soon"' in text
    assert text.count('<details class="card claw-fold" open>') == 2


def test_a_second_launch_leads_to_a_run_that_says_why_it_is_skipped(page: Client, spider: Spider) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})
    page.post(f"/jobs/{job.pk}/run/")
    first = Run.objects.get()

    answer = page.post(f"/jobs/{job.pk}/run/", follow=True)

    assert f"Skipped: run {first.pk} of the same job was still active." in answer.content.decode()


def test_the_admin_says_which_runs_were_skipped(page: Client, spider: Spider) -> None:
    job = JobFactory(spider=spider, parameters={"city": "Bonn"})
    for _ in range(2):
        answer = page.post("/admin/jobs/job/", {"action": "run_now", "_selected_action": [str(job.pk)]}, follow=True)
    assert "was still active." in answer.content.decode()
