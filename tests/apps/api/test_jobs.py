"""Jobs over the API."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY
from urllib.parse import quote

import pytest

from apps.accounts.rights import grant
from apps.jobs.models import Job
from apps.runs.models import Pool, Run
from apps.runs.policies import RetryPolicy
from apps.spiders.models import Secret
from tests.apps.jobs.nonsense import NONSENSE
from tests.factories import JobFactory, NodeFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db


def test_a_job_is_made_shown_changed_and_deleted(api, job):
    spider = job.spider
    made = api.post(
        "/api/v1/jobs/",
        {
            "name": "  nightly ",
            "spider": spider.name,
            "parameters": {"count": 2},
            "limits": {"memory_mb": 256, "cpus": 0.5},
            "priority": 2,
            "env": {"MODE": "quick"},
        },
    )
    assert made.status_code == 201, made.data
    address = f"/api/v1/jobs/{made.data['id']}/"
    shown = api.get(address).data
    assert shown == made.data
    assert (shown["name"], shown["spider"], shown["priority"]) == ("nightly", spider.name, 2)
    assert shown["limits"]["memory_mb"] == 256
    assert shown["parameters"]["count"] == 2
    assert shown["env"] == {"MODE": "quick"}
    changed = api.patch(address, {"limits": {"memory_mb": 128}, "parameters": {"count": 9}})
    assert changed.status_code == 200
    assert (changed.data["limits"]["memory_mb"], changed.data["limits"]["cpus"]) == (128, 0.5)
    assert changed.data["parameters"]["count"] == 9
    assert changed.data["priority"] == 2
    assert api.delete(address).status_code == 204
    assert api.get(address).status_code == 404


def test_what_was_read_can_be_sent_back(api, job):
    shown = api.get(f"/api/v1/jobs/{job.pk}/").data
    answer = api.put(f"/api/v1/jobs/{job.pk}/", {**shown, "name": "renamed"})
    assert answer.status_code == 200, answer.data
    assert {**answer.data, "updated_at": None} == {**shown, "name": "renamed", "updated_at": None}


def test_a_secret_goes_in_and_never_comes_out(api, job):
    body = {"name": "s", "spider": job.spider.name, "parameters": {"password": "hunter2-hunter2"}}
    made = api.post("/api/v1/jobs/", body)
    assert made.status_code == 201, made.data
    assert made.data["parameters"]["password"] == {"set": True}
    address = f"/api/v1/jobs/{made.data['id']}/"
    kept = Job.objects.get(pk=made.data["id"])
    assert "hunter2" not in f"{kept.parameters} {kept.secrets}"
    assert b"hunter2" not in bytes(Secret.objects.get(pk=kept.secrets["password"]).ciphertext)
    before = kept.secrets["password"]
    for parameters in ({"count": 1}, {"password": {"set": True}}):
        assert api.patch(address, {"parameters": parameters}).data["parameters"]["password"] == {"set": True}
        assert Job.objects.get(pk=kept.pk).secrets["password"] == before
    run = api.post(f"{address}run/")
    for answer in (made, api.get(address), api.get("/api/v1/jobs/"), run, api.get(f"/api/v1/runs/{run.data['id']}/")):
        assert "hunter2" not in answer.content.decode()
    assert "password" not in api.patch(address, {"parameters": {"password": None}}).data["parameters"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "n"}, "spider"),
        ({"name": "", "spider": "SPIDER"}, "name"),
        ({"name": "x" * 201, "spider": "SPIDER"}, "name"),
        ({"name": "n", "spider": "nothing-like-this"}, "spider"),
        ({"name": "n", "spider": 7}, "spider"),
        ({"name": "n", "spider": "SPIDER", "parameters": {"count": "many"}}, "parameters.count"),
        ({"name": "n", "spider": "SPIDER", "parameters": {"count": 0}}, "parameters.count"),
        ({"name": "n", "spider": "SPIDER", "parameters": {"words": ["a", 1]}}, "parameters.words.1"),
        ({"name": "n", "spider": "SPIDER", "parameters": {"counts": 1}}, "parameters.counts"),
        ({"name": "n", "spider": "SPIDER", "parameters": {"password": 1}}, "parameters.password"),
        ({"name": "n", "spider": "SPIDER", "parameters": [1]}, "parameters"),
        ({"name": "n", "spider": "SPIDER", "limits": {"memory_mb": 1}}, "limits.memory_mb"),
        ({"name": "n", "spider": "SPIDER", "limits": {"cpus": "nan"}}, "limits.cpus"),
        ({"name": "n", "spider": "SPIDER", "limits": {"cpus": True}}, "limits.cpus"),
        ({"name": "n", "spider": "SPIDER", "limits": {"timeout_seconds": 2**62}}, "limits.timeout_seconds"),
        ({"name": "n", "spider": "SPIDER", "limits": {"memory": 1}}, "limits.memory"),
        ({"name": "n", "spider": "SPIDER", "priority": 10}, "priority"),
        ({"name": "n", "spider": "SPIDER", "env": {"A": {"b": 1}}}, "env.A"),
        ({"name": "n", "spider": "SPIDER", "env": {"A=B": "x"}}, "env"),
        ({"name": "n", "spider": "SPIDER", "env": {"CLAW_RUN": "x"}}, "env"),
        ({"name": "n", "spider": "SPIDER", "memory_mb": 1}, "memory_mb"),
    ],
)
def test_a_fault_is_named_by_its_place(api, job, body, field):
    if body.get("spider") == "SPIDER":
        body = {**body, "spider": job.spider.name}
    answer = api.post("/api/v1/jobs/", body)
    assert answer.status_code == 400, answer.data
    assert [name for name in answer.data["fields"] if name == field or name.startswith(f"{field}.")], answer.data
    assert Job.objects.count() == 1


def test_the_spider_of_a_job_stays(api, job):
    other = SpiderFactory(project=job.project)
    answer = api.patch(f"/api/v1/jobs/{job.pk}/", {"spider": other.name})
    assert answer.status_code == 400
    assert "spider" in answer.data["fields"]


def test_a_name_that_is_taken_is_refused(api, job):
    answer = api.post("/api/v1/jobs/", {"name": job.name, "spider": job.spider.name})
    assert answer.status_code in (400, 409)
    assert "name" in answer.data["fields"]


def test_a_job_runs_with_its_parameters_and_those_laid_over_them(api, job):
    answer = api.post(f"/api/v1/jobs/{job.pk}/run/", {"parameters": {"words": ["a"]}})
    assert answer.status_code == 201, answer.data
    assert answer["Location"] == f"http://testserver/api/v1/runs/{answer.data['id']}/"
    assert answer.data["parameters"] == {"count": 5, "words": ["a"]}
    assert (answer.data["state"], answer.data["trigger"]) == ("queued", "api")
    job.refresh_from_db()
    assert job.parameters == {"count": 5}


def test_a_run_with_wrong_parameters_is_not_started(api, job):
    answer = api.post(f"/api/v1/jobs/{job.pk}/run/", {"parameters": {"count": "x"}})
    assert answer.status_code == 400
    assert "parameters.count" in answer.data["fields"]
    misspelt = api.post(f"/api/v1/jobs/{job.pk}/run/", {"params": {}})
    assert misspelt.status_code == 400
    assert "params" in misspelt.data["fields"]
    assert not Run.objects.exists()


def test_a_key_starts_one_run_however_often_it_is_sent(api, job):
    address, key = f"/api/v1/jobs/{job.pk}/run/", {"idempotency-key": "night 7"}
    first = api.post(address, headers=key)
    again = api.post(address, headers=key)
    other = api.post(address, {"parameters": {"count": 1}}, headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.data["id"] == again.data["id"]
    assert other.data["code"] == "idempotency_key_used"
    assert Run.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x01b"])
def test_a_key_that_is_no_key_is_refused(api, job, key):
    answer = api.post(f"/api/v1/jobs/{job.pk}/run/", headers={"idempotency-key": key})
    assert answer.status_code == 400
    assert not Run.objects.exists()


def test_the_list_of_jobs_is_filtered_and_goes_on(api, job):
    more = [JobFactory(spider=job.spider) for _ in range(3)]
    assert [row["id"] for row in api.get("/api/v1/jobs/", {"name": more[1].name}).data["results"]] == [more[1].pk]
    first = api.get("/api/v1/jobs/", {"limit": 3, "spider": job.spider.name}).data
    second = api.get(first["next"]).data
    assert [row["id"] for row in first["results"] + second["results"]] == [job.pk, *(each.pk for each in more)]
    assert second["next"] is None


def test_the_list_of_jobs_costs_few_queries(api, job, django_assert_max_num_queries):
    JobFactory.create_batch(10, spider=job.spider)
    with django_assert_max_num_queries(2):
        assert len(api.get("/api/v1/jobs/").data["results"]) == 11


def test_runs_outlive_their_job(api, job):
    run = RunFactory(job=job, state="succeeded")
    assert api.delete(f"/api/v1/jobs/{job.pk}/").status_code == 204
    shown = api.get(f"/api/v1/runs/{run.pk}/").data
    assert (shown["job"], shown["job_name"]) == (None, job.name)


def test_who_sees_a_job_needs_more_to_change_or_run_it(api, job):
    person = UserFactory()
    api.force_authenticate(person)
    attempts = [
        ("patch", f"/api/v1/jobs/{job.pk}/", "edit"),
        ("delete", f"/api/v1/jobs/{job.pk}/", "edit"),
        ("post", f"/api/v1/jobs/{job.pk}/run/", "run"),
    ]
    for method, address, _right in attempts:
        assert getattr(api, method)(address).status_code == 404
    grant(person, "view", job)
    for method, address, _right in attempts:
        answer = getattr(api, method)(address)
        assert (answer.status_code, answer.data["code"]) == (403, "forbidden")
    grant(person, "view", job.spider)
    made = api.post("/api/v1/jobs/", {"name": "n", "spider": job.spider.name})
    assert made.status_code == 403


# JSON has no word for what is not a number.
@pytest.mark.parametrize("case", [case for case in NONSENSE if "nan" not in str(case.changes)])
def test_nonsense_in_a_policy_is_refused_at_its_field(api, job, case):
    answer = api.patch(f"/api/v1/jobs/{job.pk}/", case.body)
    assert (answer.status_code, answer.data["code"]) == (400, "invalid"), answer.data
    fields = set(answer.data["fields"])
    # A value of a list may be blamed by its place in it.
    assert any(field == case.api_field or field.startswith(f"{case.api_field}.") for field in fields), fields
    assert len(fields) == 1


def test_policies_go_in_with_spans_as_people_write_them_and_come_out_whole(api, job):
    Pool.objects.create(name="shop.example", limit=3)
    NodeFactory(labels={"zone": "eu"})
    repair = JobFactory(spider=job.spider)
    body = {
        "limits": {"timeout_seconds": "1h30m", "idle_seconds": "10m", "total_seconds": "1d", "queue_seconds": None},
        "overlap": "queue",
        "overlap_max": 5,
        "retry": {"attempts": 3, "backoff": "list", "delays": ["30s", 300, "1h"], "never_codes": [2]},
        "on_node_lost": "wait",
        "pools": ["shop.example"],
        "selector": {"zone": "eu"},
        "repair_job": repair.pk,
    }
    answer = api.patch(f"/api/v1/jobs/{job.pk}/", body)
    assert answer.status_code == 200, answer.data
    shown = answer.data
    limits = {name: shown["limits"][name] for name in ("timeout_seconds", "idle_seconds", "total_seconds")}
    assert limits == {"timeout_seconds": 5400, "idle_seconds": 600, "total_seconds": 86400}
    assert (shown["limits"]["queue_seconds"], shown["limits"]["start_seconds"]) == (None, None)
    assert shown["retry"] == RetryPolicy(attempts=3, backoff="list", delays=(30, 300, 3600), never_codes=(2,)).as_spec()
    for name in ("overlap", "overlap_max", "on_node_lost", "pools", "selector", "repair_job"):
        assert shown[name] == body[name]
    assert api.put(f"/api/v1/jobs/{job.pk}/", shown).data == {**shown, "updated_at": ANY}
    assert api.patch(f"/api/v1/jobs/{job.pk}/", {"pools": [], "repair_job": None}).data["pools"] == []


def test_a_second_launch_of_an_active_job_is_answered_as_skipped(api, job):
    first = api.post(f"/api/v1/jobs/{job.pk}/run/")
    second = api.post(f"/api/v1/jobs/{job.pk}/run/")
    assert (second.status_code, second.data["state"], second.data["reason"]) == (201, "skipped", "overlap_skip")
    assert str(first.data["id"]) in second.data["message"]


NAMES = (Path(__file__).parents[2] / "cases/lists/names_hostile.txt").read_text().splitlines()


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_name_is_only_a_name(api, job, name):
    made = api.post("/api/v1/jobs/", {"name": name, "spider": job.spider.name})
    assert made.status_code in (201, 400), made.data
    if made.status_code == 201:
        assert made.data["name"] == name.strip()
        found = api.get("/api/v1/jobs/", {"name": name.strip()}).data["results"]
        assert [row["id"] for row in found] == [made.data["id"]]
    assert api.get(f"/api/v1/spiders/{quote(name, safe='')}/").status_code == 404
