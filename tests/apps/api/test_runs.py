"""Runs over the API."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest

from apps.accounts.rights import grant
from apps.runs.models import Run
from apps.runs.states import State
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import RunFactory, UserFactory

pytestmark = pytest.mark.django_db


def test_a_run_shows_all_that_is_promised_and_no_secret(api, job):
    run = RunFactory(job=job)
    run.spec["parameters"], run.spec["secrets"] = {"count": 1}, {"password": 4711}
    run.save()
    answer = api.get(f"/api/v1/runs/{run.pk}/")
    promised = (
        "id job spider version state reason message attempt node exit_code queued_at started_at finished_at "
        "items lines errors request_id"
    )
    assert set(promised.split()) <= set(answer.data)
    assert answer.data["job"] == job.pk
    assert answer.data["spider"] == job.spider.name
    assert answer.data["state"] == "queued"
    assert answer.data["parameters"] == {"count": 1, "password": {"set": True}}
    assert "4711" not in answer.content.decode()


def test_what_a_run_made_is_for_those_who_may_see_its_data(api, job):
    run = RunFactory(job=job, state=State.SUCCEEDED, output={"report": "all our prices"})
    assert api.get(f"/api/v1/runs/{run.pk}/").data["output"] == run.output
    onlooker = UserFactory()
    grant(onlooker, "view", job)
    api.force_authenticate(onlooker)
    assert api.get(f"/api/v1/runs/{run.pk}/").data["output"] == {}


def test_a_failed_run_says_why_in_a_sentence(api, job):
    run = RunFactory(job=job, state=State.FAILED, reason="exit_nonzero", detail={"exit_code": 3, "code": 3})
    answer = api.get(f"/api/v1/runs/{run.pk}/").data
    assert answer["reason"] == "exit_nonzero"
    assert "3" in answer["message"]
    assert answer["message"].endswith(".")


def test_the_list_goes_on_by_its_own_addresses(api, job):
    made = [RunFactory(job=job).pk for _ in range(5)]
    seen, address = [], "/api/v1/runs/?limit=2"
    while address:
        answer = api.get(address)
        seen += [run["id"] for run in answer.data["results"]]
        address = answer.data["next"]
        assert address is None or address.startswith("http://testserver/api/v1/runs/?")
    assert seen == sorted(made, reverse=True)


def test_the_list_costs_the_same_number_of_queries_at_any_length(api, job, django_assert_max_num_queries):
    RunFactory.create_batch(20, job=job)
    with django_assert_max_num_queries(3):
        assert len(api.get("/api/v1/runs/").data["results"]) == 20


def test_the_list_is_filtered_by_state_job_spider_and_time(api, job, now):
    other = RunFactory(project=job.project, job=None, spider=job.spider, state=State.RUNNING)
    old = RunFactory(job=job, queued_at=now - timedelta(days=2))

    def ids(query: dict[str, str]) -> list[int]:
        return [run["id"] for run in api.get("/api/v1/runs/", query).data["results"]]

    assert ids({"state": "queued"}) == [old.pk]
    assert ids({"state": "queued, running"}) == [old.pk, other.pk]
    assert ids({"job": str(job.pk)}) == [old.pk]
    assert ids({"spider": job.spider.name}) == [old.pk, other.pk]
    assert ids({"since": (now - timedelta(hours=1)).isoformat()}) == [other.pk]


@pytest.mark.parametrize(
    ("query", "field", "word"),
    [
        ("state=runing", "state", "queued, starting, running"),
        ("state=", "state", ""),
        ("job=x", "job", "integer"),
        ("job=99999999999999999999999", "job", ""),
        ("since=yesterday", "since", ""),
        ("since=99999-01-01T00:00:00Z", "since", ""),
        ("spider=a%00b", "spider", "ull"),
        ("after=-1", "after", "0"),
        ("after=9223372036854775808", "after", ""),
        ("limit=0", "limit", "1"),
        ("limit=1e3", "limit", "integer"),
        ("status=queued", "status", "state"),
    ],
)
def test_a_wrong_filter_is_refused_and_named(api, query, field, word):
    answer = api.get(f"/api/v1/runs/?{query}")
    assert answer.status_code == 400
    assert answer.data["code"] == "invalid"
    assert word in answer.data["fields"][field][0]


def test_the_largest_numbers_are_answered(api, job):
    largest = 2**63 - 1
    assert api.get(f"/api/v1/runs/?job={largest}&after={largest}").data["results"] == []
    assert api.get(f"/api/v1/runs/{largest}/").status_code == 404
    assert api.get(f"/api/v1/runs/{largest + 1}/").status_code == 404
    assert api.get(f"/api/v1/runs/{'9' * 5000}/").status_code == 404


def test_log_rows_come_by_line_and_level(api, job):
    run = RunFactory(job=job)
    store_rows(run, [row(1, "a"), row(2, "<b>", 40), row(3, "c", 10), row(4, "d", 30)])
    first = api.get(f"/api/v1/runs/{run.pk}/log/?limit=2").data
    assert [each["line"] for each in first["results"]] == [1, 2]
    assert first["results"][1] == {"line": 2, "at": "2026-09-21T14:13:20.002000Z", "level": 40, "text": "<b>"}
    assert [each["text"] for each in api.get(first["next"]).data["results"]] == ["c", "d"]
    for level in ("warning", "WARNING", "30"):
        rows = api.get(f"/api/v1/runs/{run.pk}/log/?level={level}").data["results"]
        assert [each["line"] for each in rows] == [2, 4]
    wrong = api.get(f"/api/v1/runs/{run.pk}/log/?level=loud")
    assert wrong.status_code == 400
    assert "WARNING (30)" in wrong.data["fields"]["level"][0]


def test_the_log_is_downloaded_as_it_was_printed(api, job):
    run = RunFactory(job=job)
    store_rows(run, [row(1, "first"), row(2, "<script>", 40), row(3, "")])
    answer = api.get(f"/api/v1/runs/{run.pk}/log.txt", headers={"accept": "text/plain"})
    assert answer.getvalue() == b"first\n<script>\n\n"
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_items_come_in_pages_and_as_files(api, job):
    run = RunFactory(job=job)
    store_items(run, [{"title": "=1+1", "n": 1}, {"title": "b", "extra": None}, {"title": "c"}])
    first = api.get(f"/api/v1/runs/{run.pk}/items/?limit=2").data
    assert [item["seq"] for item in first["results"]] == [1, 2]
    assert first["results"][0]["data"] == {"title": "=1+1", "n": 1}
    second = api.get(first["next"]).data
    assert [item["seq"] for item in second["results"]] == [3]
    assert second["next"] is None
    lines = api.get(f"/api/v1/runs/{run.pk}/items.jsonl").getvalue().decode().splitlines()
    assert [json.loads(line)["title"] for line in lines] == ["=1+1", "b", "c"]
    table = list(csv.reader(io.StringIO(api.get(f"/api/v1/runs/{run.pk}/items.csv").getvalue().decode())))
    assert set(table[0]) == {"title", "n", "extra"}
    assert table[1][table[0].index("title")] == "'=1+1"


def test_a_page_of_large_items_ends_early(api, job, monkeypatch):
    monkeypatch.setattr("apps.runs.api.runs.ITEM_PAGE_BYTES", 1000)
    run = RunFactory(job=job)
    store_items(run, [{"text": "x" * 600}] * 5)
    first = api.get(f"/api/v1/runs/{run.pk}/items/").data
    assert [item["seq"] for item in first["results"]] == [1, 2]
    assert [item["seq"] for item in api.get(first["next"]).data["results"]] == [3, 4]


def test_stopping_twice_is_no_fault_and_a_finished_run_says_so(api, job):
    run = RunFactory(job=job, state=State.RUNNING)
    for _ in range(2):
        answer = api.post(f"/api/v1/runs/{run.pk}/stop/")
        assert (answer.status_code, answer.data["state"]) == (200, "stopping")
    over = RunFactory(job=job, state=State.SUCCEEDED)
    answer = api.post(f"/api/v1/runs/{over.pk}/stop/")
    assert (answer.status_code, answer.data["code"]) == (409, "run_finished")


def test_a_queued_run_is_canceled_at_once(api, job):
    run = RunFactory(job=job)
    assert api.post(f"/api/v1/runs/{run.pk}/stop/").data["state"] == "canceled"


def test_running_again_makes_a_new_run_of_the_same_order(api, job):
    run = RunFactory(job=job, state=State.FAILED)
    answer = api.post(f"/api/v1/runs/{run.pk}/rerun/")
    assert answer.status_code == 201
    assert answer.data["id"] != run.pk
    again = Run.objects.get(pk=answer.data["id"])
    assert {name: again.spec[name] for name in run.spec} == run.spec


def test_samples_of_a_run_that_never_ran_are_none(api, job):
    run = RunFactory(job=job)
    assert api.get(f"/api/v1/runs/{run.pk}/samples/").data == {"results": [], "next": None}


@pytest.mark.parametrize(
    ("part", "right"),
    [("log/", "view_log"), ("log.txt", "view_log"), ("items/", "view_data"), ("items.csv", "export_data")],
)
def test_who_sees_the_run_needs_more_for_what_it_left(api, job, part, right):
    run = RunFactory(job=job)
    person = UserFactory()
    api.force_authenticate(person)
    assert api.get(f"/api/v1/runs/{run.pk}/{part}").status_code == 404
    grant(person, "view", job)
    answer = api.get(f"/api/v1/runs/{run.pk}/{part}")
    assert (answer.status_code, answer.data["code"]) == (403, "forbidden")
    assert answer.data["detail"].startswith("You may not")
    grant(person, right, job)
    assert api.get(f"/api/v1/runs/{run.pk}/{part}").status_code == 200
