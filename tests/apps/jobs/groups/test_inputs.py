"""One job, a table of inputs, many runs."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from apps.core.actors import Actor, person
from apps.core.errors import Invalid
from apps.jobs.models import Job
from apps.jobs.services import run_job
from apps.jobs.services.groups import check_inputs, release, start_inputs
from apps.runs.models import Batch, Run, RunEvent
from apps.runs.states import State, Trigger
from tests.apps.jobs.groups.grouped import end, runs_of, searching, states_of
from tests.factories import BareSpiderFactory, JobFactory, UserFactory

pytestmark = pytest.mark.django_db

ROWS = [{"keyword": "sea"}, {"keyword": "sun", "pages": 7}, {"keyword": "rain"}]


@pytest.fixture
def by(db: None) -> Actor:
    return person(UserFactory(username="ann"))


@pytest.fixture
def job(db: None) -> Job:
    return searching(parameters={"keyword": "sea", "pages": 5})


def faults(job: Job, by: Actor, now: datetime, rows: Any, **more: Any) -> dict[str, list[str]]:
    with pytest.raises(Invalid) as excinfo:
        start_inputs(job=job, rows=rows, by=by, now=now, **more)
    assert not Batch.objects.exists()
    assert not Run.objects.exists()
    return excinfo.value.fields


def test_each_row_is_a_run_with_its_values_laid_over_the_jobs(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=2, name="words")

    runs = runs_of(batch)
    assert [run.spec["parameters"] for run in runs] == [
        {"keyword": "sea", "pages": 5},
        {"keyword": "sun", "pages": 7},
        {"keyword": "rain", "pages": 5},
    ]
    assert [(run.batch_key, run.trigger, run.apart) for run in runs] == [
        ("1", Trigger.INPUTS, True),
        ("2", Trigger.INPUTS, True),
        ("3", Trigger.INPUTS, True),
    ]
    assert (batch.kind, batch.name, batch.actor, batch.job_name) == ("inputs", "words", "ann", job.name)
    assert batch.graph == {"columns": ["keyword", "pages"]}
    assert LogEntry.objects.get().change_message == "started: 3"


def test_as_many_runs_as_the_group_may_have_are_queued_at_once(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=2)

    assert states_of(batch) == ["queued", "queued", "waiting"]
    # Of the insertion each; of the turn and of the way into the queue for two of them.
    assert RunEvent.objects.count() == 3 + 2 * 2


def test_the_next_is_released_when_one_is_over(job: Job, by: Actor, now: datetime) -> None:
    job.queue_seconds = 60
    job.save()
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=1)
    assert release(batch=batch, now=now) == 0

    end(runs_of(batch)[:1])
    later = now + timedelta(hours=2)

    assert release(batch=batch, now=later) == 1
    assert states_of(batch) == ["succeeded", "queued", "waiting"]
    second = runs_of(batch)[1]
    assert (second.queued_at, second.expires_at) == (later, later + timedelta(seconds=60))


def test_a_run_that_is_being_prepared_keeps_its_place(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=1)
    end(runs_of(batch), State.WAITING)

    assert release(batch=batch, now=now) == 0


@pytest.mark.parametrize("state", [State.STARTING, State.RUNNING, State.PAUSED, State.STOPPING, State.RETRY_WAIT])
def test_a_run_that_is_not_over_keeps_its_place(job: Job, by: Actor, now: datetime, state: State) -> None:
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=1)
    end(runs_of(batch)[:1], state)

    assert release(batch=batch, now=now) == 0


def test_nothing_is_released_after_the_group_was_stopped(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=1)
    end(runs_of(batch)[:1])
    batch.canceled_at = now

    assert release(batch=batch, now=now) == 0


def test_the_group_runs_beside_the_job_and_does_not_mind_its_limits(job: Job, by: Actor, now: datetime) -> None:
    usual, _new = run_job(job=job, by=by, now=now, trigger=Trigger.MANUAL)
    batch = start_inputs(job=job, rows=ROWS, by=by, now=now, concurrency=3)

    assert states_of(batch) == ["queued"] * 3
    assert all(run.job_limit is None for run in runs_of(batch))
    end([usual])
    again, _new = run_job(job=job, by=by, now=now, trigger=Trigger.MANUAL)
    assert again.state == State.QUEUED


def test_nothing_is_written_unless_all_rows_fit(job: Job, by: Actor, now: datetime) -> None:
    rows = [{"keyword": "sea"}, {"keyword": ""}, {"pages": 0}, {"keyword": "x", "pages": "many"}]

    said = faults(job, by, now, rows)

    assert said.keys() == {"rows.2.keyword", "rows.3.pages", "rows.4.pages"}


def test_checking_says_the_same_and_writes_nothing(job: Job, by: Actor, now: datetime) -> None:
    assert check_inputs(job=job, rows=ROWS, by=by, now=now) == {}
    assert check_inputs(job=job, rows=[{"pages": 0}], by=by, now=now).keys() == {"rows.1.pages"}
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("rows", "more", "at"),
    [
        ([], {}, "rows"),
        ([{"keyword": "x"}] * 1001, {}, "rows"),
        (ROWS, {"concurrency": 0}, "concurrency"),
        (ROWS, {"concurrency": 1001}, "concurrency"),
        (ROWS, {"concurrency": True}, "concurrency"),
        (ROWS, {"concurrency": "2"}, "concurrency"),
        (ROWS, {"name": "x" * 201}, "name"),
        (ROWS, {"name": "a\nb"}, "name"),
        ([{"keyword": "x", "unknown": 1}], {}, "rows.1.unknown"),
        ([{"keyword": "x", "token": "secret"}], {}, "rows.1.token"),
        ([{"keyword": "a\0b"}], {}, "rows.1.keyword"),
    ],
)
def test_bad_input_is_refused_at_its_place(
    job: Job, by: Actor, now: datetime, rows: Any, more: dict[str, Any], at: str
) -> None:
    assert at in faults(job, by, now, rows, **more)


def test_a_table_full_of_faults_is_answered_in_short(job: Job, by: Actor, now: datetime) -> None:
    assert len(faults(job, by, now, [{"pages": 0}] * 1000)) == 100


def test_a_job_without_a_version_says_so(by: Actor, now: datetime) -> None:
    job = JobFactory(spider=BareSpiderFactory())

    with pytest.raises(Exception, match="has no version yet"):
        start_inputs(job=job, rows=ROWS, by=by, now=now)


def test_a_thousand_rows_are_inserted_in_less_than_five_seconds(by: Actor, now: datetime) -> None:
    job = searching()
    began = time.monotonic()
    batch = start_inputs(job=job, rows=[{"keyword": f"word {n}"} for n in range(1000)], by=by, now=now)
    took = time.monotonic() - began

    assert Run.objects.filter(batch=batch).count() == 1000
    assert took < 5, f"{took:.1f} s"
    print(f"1 000 runs in {took:.2f} s")


def test_rows_that_need_a_call_first_are_prepared_in_their_turn(job: Job, by: Actor, now: datetime) -> None:
    job.calls = {"news": {"method": "GET", "url": "http://news.example/"}}
    job.save()
    batch = start_inputs(job=job, rows=[{"keyword": "{{ call.news.word }}"}] * 3, by=by, now=now, concurrency=2)

    assert states_of(batch) == ["waiting"] * 3
    assert set(RunEvent.objects.filter(kind="turn").values_list("run__batch_key", flat=True)) == {"1", "2"}
    assert release(batch=batch, now=now) == 0
    end(runs_of(batch)[:1], State.FAILED)
    assert release(batch=batch, now=now) == 1


def test_templates_in_a_row_are_filled_in_as_anywhere(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=[{"keyword": "x", "day": "{{ yesterday }}"}], by=by, now=now)

    yesterday = (now - timedelta(days=1)).date().isoformat()
    assert runs_of(batch)[0].spec["parameters"]["day"] == yesterday
