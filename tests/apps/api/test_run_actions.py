"""Stop, kill, pause, resume and run again over the API, one by one and many at once."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.rights import grant
from apps.accounts.services import create_token
from apps.runs.models import Run, RunEvent
from apps.runs.states import State
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import AttemptFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db


def act(api: APIClient, run: Run, action: str, body: Any = None) -> Any:
    return api.post(f"/api/v1/runs/{run.pk}/{action}/", body or {}, format="json")


def test_a_kill_follows_a_stop_or_asks_for_both(api, job):
    stopping, running = RunFactory(job=job, state=State.STOPPING), RunFactory(job=job, state=State.RUNNING)
    for run in (stopping, running):
        answer = act(api, run, "kill")
        assert answer.status_code == 200
        assert answer.data["state"] == "stopping"
        assert answer.data["kill_requested_at"] is not None
    assert RunEvent.objects.filter(run=running, kind="kill").get().actor.startswith("api: ")


def test_a_pause_is_asked_and_taken_back(api, job):
    run = RunFactory(job=job, state=State.RUNNING)
    assert act(api, run, "pause").data["pause_requested_at"] is not None
    assert act(api, run, "pause").status_code == 200
    assert act(api, run, "resume").data["pause_requested_at"] is None


@pytest.mark.parametrize("action", ["stop", "kill", "pause", "resume"])
def test_a_run_that_is_over_is_not_changed_and_says_so(api, job, action):
    run = RunFactory(job=job, state=State.SUCCEEDED)
    before = Run.objects.values().get(pk=run.pk)
    answer = act(api, run, action)
    assert answer.status_code == 409
    assert answer.data["code"] in ("run_finished", "not_possible_now")
    assert str(run.pk) in answer.data["detail"]
    assert Run.objects.values().get(pk=run.pk) == before


@pytest.mark.parametrize("action", ["stop", "kill", "pause", "resume", "rerun"])
def test_a_foreign_run_answers_as_one_that_does_not_exist(api, action):
    foreign = RunFactory(state=State.RUNNING)
    nowhere = Run(pk=foreign.pk + 1000)
    assert act(api, foreign, action).status_code == act(api, nowhere, action).status_code == 404
    assert act(api, foreign, action).data == act(api, nowhere, action).data
    foreign.refresh_from_db()
    assert foreign.stop_requested_at is None


def test_running_again_with_other_parameters_lays_them_over(api, job):
    run = RunFactory(job=job, state=State.FAILED)
    run.spec["parameters"] = {"count": 5, "words": ["a"]}
    run.save(update_fields=["spec"])
    answer = act(api, run, "rerun", {"parameters": {"count": 7}})
    assert answer.status_code == 201
    assert answer.data["parameters"] == {"count": 7, "words": ["a"]}
    run.refresh_from_db()
    assert run.spec["parameters"]["count"] == 5


def test_a_secret_typed_for_a_second_run_is_kept_and_not_shown(api, job):
    run = RunFactory(job=job, state=State.FAILED)
    answer = act(api, run, "rerun", {"parameters": {"password": "swordfish"}})
    assert answer.data["parameters"]["password"] == {"set": True}
    again = Run.objects.get(pk=answer.data["id"])
    assert isinstance(again.spec["secrets"]["password"], int)
    assert "swordfish" not in str(again.spec)
    third = act(api, again, "rerun", {"parameters": {"password": {"set": True}, "count": 2}})
    assert Run.objects.get(pk=third.data["id"]).spec["secrets"] == again.spec["secrets"]


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ({"count": 0}, "count"),
        ({"count": "x"}, "count"),
        ({"password": 5}, "password"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_at_their_place(api, job, parameters, place):
    run = RunFactory(job=job, state=State.FAILED)
    answer = act(api, run, "rerun", {"parameters": parameters})
    assert answer.status_code == 400
    assert f"parameters.{place}" in answer.data["fields"]
    assert Run.objects.count() == 1


def test_a_bulk_answers_for_each_run_and_none_hinders_another(api, job):
    active, over = RunFactory(job=job, state=State.RUNNING), RunFactory(job=job, state=State.FAILED)
    seen_only = RunFactory(state=State.RUNNING)
    grant(api.handler._force_user, "view", seen_only.job)
    foreign = RunFactory(state=State.RUNNING)
    ids = [over.pk, foreign.pk, active.pk, seen_only.pk, active.pk]
    answer = api.post("/api/v1/runs/bulk/", {"action": "stop", "ids": ids}, format="json")
    assert answer.status_code == 200
    told = {each["id"]: (each["ok"], each["code"], each["state"]) for each in answer.data["results"]}
    assert told == {
        over.pk: (False, "run_finished", None),
        foreign.pk: (False, "not_found", None),
        active.pk: (True, "", "stopping"),
        seen_only.pk: (False, "forbidden", None),
    }


def test_a_bulk_of_reruns_names_the_new_runs(api, job):
    runs = [RunFactory(job=job, state=State.FAILED) for _ in range(3)]
    body = {"action": "rerun", "ids": [run.pk for run in runs]}
    results = api.post("/api/v1/runs/bulk/", body, format="json").data["results"]
    assert all(each["ok"] and each["run"] > max(body["ids"]) for each in results)
    assert Run.objects.filter(job=job).count() == 6


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "delete", "ids": [1]},
        {"action": "stop", "ids": []},
        {"action": "stop", "ids": ["x"]},
        {"action": "stop", "ids": [-1]},
        {"action": "stop", "ids": list(range(1, 202))},
        {"action": "stop", "ids": [2**63]},
        {"action": "stop", "ids": [1], "why": "?"},
    ],
)
def test_a_bulk_that_makes_no_sense_is_refused(api, body):
    assert api.post("/api/v1/runs/bulk/", body, format="json").status_code == 400


def test_a_token_that_may_run_may_also_kill_pause_and_do_many(owner, job, now):
    run = RunFactory(job=job, state=State.RUNNING)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION="Token " + create_token(user=owner, name="t", scope="run", now=now)[1])
    for action in ("pause", "resume", "kill"):
        assert act(client, run, action).status_code == 200
    assert client.post("/api/v1/runs/bulk/", {"action": "stop", "ids": [run.pk]}, format="json").status_code == 200


def test_attempts_tell_how_each_ended(api, job, now):
    run = RunFactory(job=job, state=State.RUNNING, attempt=2)
    AttemptFactory(run=run, number=1, reason="oom", detail={"memory_mb": 512}, exit_code=137, finished_at=now, lines=3)
    AttemptFactory(run=run, number=2, environment="clawpanel-run:abc")
    first, second = api.get(f"/api/v1/runs/{run.pk}/attempts/").data["results"]
    assert (first["number"], first["state"], first["exit_code"], first["lines"]) == (1, "failed", 137, 3)
    assert first["message"] == "Out of memory: it needed more than 512 MB."
    assert (second["state"], second["image"]) == ("running", "clawpanel-run:abc")


def test_events_are_read_in_order_and_in_pages(api, job, now):
    run = RunFactory(job=job)
    for kind in ("state", "adopted", "kill"):
        RunEvent.objects.create(run=run, at=now, kind=kind, actor="ada")
    first = api.get(f"/api/v1/runs/{run.pk}/events/?limit=2").data
    assert [each["kind"] for each in first["results"]] == ["state", "adopted"]
    rest = api.get(first["next"]).data
    assert [each["kind"] for each in rest["results"]] == ["kill"]
    assert rest["next"] is None


def test_log_and_items_of_one_attempt(api, job):
    run = RunFactory(job=job, attempt=2)
    store_rows(run, [row(1, "first")])
    store_rows(run, [row(2, "second")], attempt=2)
    store_items(run, [{"n": 1}])
    store_items(run, [{"n": 2}], first=2, attempt=2)
    address = f"/api/v1/runs/{run.pk}"
    assert [each["text"] for each in api.get(f"{address}/log/?attempt=2").data["results"]] == ["second"]
    assert [each["data"] for each in api.get(f"{address}/items/?attempt=1").data["results"]] == [{"n": 1}]
    assert b"".join(api.get(f"{address}/log.txt?attempt=1")) == b"first\n"
    assert b"".join(api.get(f"{address}/items.jsonl?attempt=2")) == b'{"n": 2}\n'
    assert b"".join(api.get(f"{address}/items.csv?attempt=1")) == b"n\r\n1\r\n"
    assert api.get(f"{address}/log/?attempt=0").status_code == 400
    assert api.get(f"{address}/items.csv?attempt=x").status_code == 400


def test_a_waiting_run_says_why_and_one_that_was_skipped_too(api, job):
    queued = RunFactory(job=job)
    assert api.get(f"/api/v1/runs/{queued.pk}/").data["waiting"] == "No worker is running."
    skipped = RunFactory(job=job, state=State.SKIPPED, reason="overlap_skip", detail={"run": queued.pk})
    answer = api.get(f"/api/v1/runs/{skipped.pk}/").data
    assert (answer["state"], answer["reason"], answer["started_at"]) == ("skipped", "overlap_skip", None)
    assert answer["message"].endswith(".")
    assert [each["id"] for each in api.get("/api/v1/runs/?state=skipped").data["results"]] == [skipped.pk]


def test_a_stranger_gets_no_attempts_and_no_events(job):
    run = RunFactory(job=job)
    client = APIClient()
    client.force_authenticate(UserFactory())
    for part in ("attempts", "events"):
        assert client.get(f"/api/v1/runs/{run.pk}/{part}/").status_code == 404
