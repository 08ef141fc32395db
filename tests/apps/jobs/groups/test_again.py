"""What failed in a group, once more."""

from __future__ import annotations

from datetime import datetime

import pytest

from apps.core.actors import Actor, person
from apps.core.errors import NotFound
from apps.jobs.models import Job
from apps.jobs.services.groups import NothingFailed, run_failed_again, start_inputs
from apps.runs.models import Batch
from apps.runs.states import State
from tests.apps.jobs.groups.grouped import end, runs_of, searching, states_of
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def by(db: None) -> Actor:
    return person(UserFactory(username="ann"))


@pytest.fixture
def job(db: None) -> Job:
    return searching()


@pytest.fixture
def batch(job: Job, by: Actor, now: datetime) -> Batch:
    """Six rows, each come to another end."""
    batch = start_inputs(job=job, rows=[{"keyword": f"w{n}"} for n in range(6)], by=by, now=now, concurrency=3)
    ends = (State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.LOST, State.CANCELED, State.RUNNING)
    for run, state in zip(runs_of(batch), ends, strict=True):
        end([run], state)
    return batch


def test_only_what_failed_is_taken_up_with_its_row(batch: Batch, by: Actor, now: datetime) -> None:
    again = run_failed_again(batch=batch, by=by, now=now)

    assert [(run.batch_key, run.spec["parameters"]["keyword"]) for run in runs_of(again)] == [
        ("2", "w1"),
        ("3", "w2"),
        ("4", "w3"),
    ]
    assert (again.origin, again.kind, again.concurrency, again.graph) == (batch, "inputs", 3, batch.graph)
    assert {(run.apart, run.trigger, run.job_limit) for run in runs_of(again)} == {(True, "inputs", None)}
    assert states_of(again) == ["queued"] * 3


def test_canceled_runs_are_taken_up_when_asked_for(batch: Batch, by: Actor, now: datetime) -> None:
    again = run_failed_again(batch=batch, by=by, now=now, canceled=True)

    assert [run.batch_key for run in runs_of(again)] == ["2", "3", "4", "5"]


def test_nothing_is_taken_up_twice(batch: Batch, by: Actor, now: datetime) -> None:
    run_failed_again(batch=batch, by=by, now=now)

    with pytest.raises(NothingFailed):
        run_failed_again(batch=batch, by=by, now=now)
    assert [run.batch_key for run in runs_of(run_failed_again(batch=batch, by=by, now=now, canceled=True))] == ["5"]


def test_what_fails_again_can_be_run_again(batch: Batch, by: Actor, now: datetime) -> None:
    again = run_failed_again(batch=batch, by=by, now=now)
    end(runs_of(again)[1:2], State.FAILED)

    third = run_failed_again(batch=again, by=by, now=now)

    assert [run.batch_key for run in runs_of(third)] == ["3"]


def test_a_deleted_job_does_not_hinder_it(batch: Batch, job: Job, by: Actor, now: datetime) -> None:
    job.delete()
    batch.refresh_from_db()

    assert len(runs_of(run_failed_again(batch=batch, by=by, now=now))) == 3


def test_a_batch_of_another_kind_is_not_for_this_door(batch: Batch, by: Actor, now: datetime) -> None:
    Batch.objects.update(kind="graph")

    with pytest.raises(NotFound):
        run_failed_again(batch=batch, by=by, now=now)
