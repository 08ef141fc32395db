"""Batches and dependencies over the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.jobs.models import Dependency, Job
from apps.jobs.services.batches import settle
from apps.runs.models import Batch, Run
from apps.spiders.models import Project
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of, start
from tests.factories import JobFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(project: Project) -> list[Job]:
    """Each follows the one before it."""
    made = jobs_of("fetch", "clean", "report", spider=SpiderFactory(project=project))
    after(made[1], made[0])
    after(made[2], made[1], condition="always")
    return made


def member(role: str, project: Any) -> APIClient:
    user: User = UserFactory()
    grant(user, role, project)
    client = APIClient()
    client.force_authenticate(user)
    return client


def test_a_run_names_its_batch_and_the_batch_its_jobs(api: APIClient, jobs: list[Job]) -> None:
    run = api.post(f"/api/v1/jobs/{jobs[0].pk}/run/", {}, format="json").data
    batch = api.get(f"/api/v1/batches/{run['batch']}/").data

    assert (batch["state"], batch["kind"], batch["job"], batch["trigger"]) == ("running", "graph", jobs[0].pk, "api")
    assert batch["progress"]["total"] == 3
    assert [(node["name"], node["state"]) for node in batch["nodes"]] == [
        ("fetch", "queued"),
        ("clean", "waiting"),
        ("report", "waiting"),
    ]
    assert batch["nodes"][1]["message"] == f"It waits for job fetch (run {run['id']} is queued)."
    assert batch["edges"][1] == {"upstream": str(jobs[1].pk), "key": str(jobs[2].pk), "condition": "always"}
    rows = api.get("/api/v1/runs/", {"batch": run["batch"]}).data["results"]
    assert {row["job_name"] for row in rows} == {"fetch", "clean", "report"}


def test_batches_are_listed_by_job_kind_and_whether_they_go_on(api: APIClient, jobs: list[Job], now: datetime) -> None:
    done = start(jobs[0], now)
    for job in jobs:
        end(done, job, "succeeded", now)
    going_on = start(jobs[0], now)

    def ids(**query: Any) -> list[int]:
        return [row["id"] for row in api.get("/api/v1/batches/", query).data["results"]]

    assert ids() == [going_on.pk, done.pk]
    assert ids(open="true") == [going_on.pk]
    assert ids(open="false") == [done.pk]
    assert ids(kind="backfill") == []
    assert ids(job=jobs[1].pk) == []
    assert api.get("/api/v1/batches/", {"kind": "heap"}).status_code == 400
    first = api.get("/api/v1/batches/", {"limit": 1}).data
    assert [row["id"] for row in api.get(first["next"]).data["results"]] == [done.pk]


def test_a_batch_is_stopped_and_taken_up_again(api: APIClient, jobs: list[Job], now: datetime) -> None:
    batch = start(jobs[0], now)
    end(batch, jobs[0], "succeeded", now)
    path = f"/api/v1/batches/{batch.pk}/"

    assert api.post(f"{path}again/", {}, format="json").data["code"] == "nothing_to_repeat"
    stopped = api.post(f"{path}stop/").data
    assert [node["state"] for node in stopped["nodes"]] == ["succeeded", "canceled", "canceled"]
    settle(batch_id=batch.pk, now=now)
    assert api.post(f"{path}stop/").status_code == 409
    again = api.post(f"{path}again/", {}, format="json")

    assert again.status_code == 201
    assert again.data["origin"] == batch.pk
    assert [(node["state"], node["taken_over"]) for node in again.data["nodes"]] == [
        ("succeeded", True),
        ("queued", False),
        ("waiting", False),
    ]
    assert run_of(Batch.objects.get(pk=again.data["id"]), jobs[1]).requested_by is not None


def test_a_viewer_looks_and_changes_nothing(jobs: list[Job], project: Project, now: datetime) -> None:
    batch, client = start(jobs[0], now), member("viewer", project)
    path = f"/api/v1/batches/{batch.pk}/"

    assert client.get(path).status_code == 200
    assert client.post(f"{path}stop/").status_code == 403
    assert client.post(f"{path}again/", {}, format="json").status_code == 403
    assert client.put(f"/api/v1/jobs/{jobs[1].pk}/dependencies/", {"upstreams": []}, format="json").status_code == 403
    assert set(Run.objects.values_list("state", flat=True)) == {"queued", "waiting"}


def test_what_may_not_be_seen_has_no_name_and_no_run(jobs: list[Job], now: datetime) -> None:
    batch, client = start(jobs[0], now), member("viewer", jobs[0])

    nodes = client.get(f"/api/v1/batches/{batch.pk}/").data["nodes"]

    assert [(node["name"], node["job"], node["run"] is None, node["state"]) for node in nodes] == [
        ("fetch", jobs[0].pk, False, "queued"),
        (f"#{jobs[1].pk}", None, True, "waiting"),
        (f"#{jobs[2].pk}", None, True, "waiting"),
    ]


# -- dependencies -----------------------------------------------------------------------------------------------------


def test_dependencies_are_read_and_sent_back(api: APIClient, jobs: list[Job]) -> None:
    path = f"/api/v1/jobs/{jobs[1].pk}/dependencies/"
    read = api.get(path).data
    assert read == {
        "upstreams": [{"job": jobs[0].pk, "name": "fetch", "condition": "success"}],
        "join": "all",
        "downstreams": [{"job": jobs[2].pk, "name": "report", "condition": "always"}],
    }

    answer = api.put(path, {**read, "join": "any"}, format="json")

    assert (answer.status_code, answer.data) == (200, {**read, "join": "any"})
    assert Dependency.objects.filter(job=jobs[1]).count() == 1
    assert api.put(path, {"upstreams": []}, format="json").data["upstreams"] == []
    assert not Dependency.objects.filter(job=jobs[1]).exists()


@pytest.mark.parametrize(
    ("upstreams", "place"),
    [
        ([{"job": "self"}], "upstreams.0"),
        ([{"job": "report"}], "upstreams.0"),
        ([{"job": "fetch"}, {"job": "fetch"}], "upstreams.1"),
        ([{"job": "foreign"}], "upstreams.0"),
        ([{"job": 10**15}], "upstreams.0"),
        ([{"job": "fetch", "condition": "never"}], "upstreams.0.condition"),
        ([{"job": "fetch", "when": "success"}], "upstreams.0.when"),
        ([{}], "upstreams.0.job"),
        ("fetch", "upstreams"),
        ([1], "upstreams.0"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(
    api: APIClient, jobs: list[Job], upstreams: Any, place: str
) -> None:
    ids = {"self": jobs[1].pk, "fetch": jobs[0].pk, "report": jobs[2].pk, "foreign": JobFactory().pk}
    sent = upstreams
    if isinstance(upstreams, list):
        sent = [
            {**each, "job": ids.get(each["job"], each["job"])} if isinstance(each, dict) and "job" in each else each
            for each in upstreams
        ]

    answer = api.put(f"/api/v1/jobs/{jobs[1].pk}/dependencies/", {"upstreams": sent}, format="json")

    assert (answer.status_code, answer.data["code"]) == (400, "invalid")
    assert place in answer.data["fields"], answer.data
    assert Dependency.objects.filter(job=jobs[1]).count() == 1
