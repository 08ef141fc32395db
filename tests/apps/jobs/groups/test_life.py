"""A group from its start to its end, whatever happens beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

import pytest
from django.db import connection
from django.utils import timezone

from apps.core.actors import SYSTEM, Actor, person
from apps.jobs.models import Job
from apps.jobs.services.batches import settle, stop_batch
from apps.jobs.services.groups import release, start_backfill, start_inputs
from apps.runs.models import Batch, Run, RunEvent
from apps.runs.services import move
from apps.runs.states import ACTIVE, State
from tests.apps.jobs.groups.grouped import end, runs_of, schedule_of, searching, states_of
from tests.factories import UserFactory


@pytest.fixture
def by(db: None) -> Actor:
    return person(UserFactory())


@pytest.fixture
def job(db: None) -> Job:
    return searching()


def rows(n: int) -> list[dict[str, str]]:
    return [{"keyword": f"word {number}"} for number in range(n)]


@pytest.mark.django_db
def test_a_group_goes_on_run_by_run_until_it_is_over(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=rows(5), by=by, now=now, concurrency=2)
    seen = []
    while not Batch.objects.get(pk=batch.pk).finished_at:
        seen.append(sum(run.state == State.QUEUED for run in runs_of(batch)))
        end([run for run in runs_of(batch) if run.state == State.QUEUED][:1])
        settle(batch_id=batch.pk, now=now)

    assert seen == [2, 2, 2, 2, 1]
    assert states_of(batch) == ["succeeded"] * 5


@pytest.mark.django_db
def test_a_stop_ends_all_of_it(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=rows(4), by=by, now=now, concurrency=2)
    end(runs_of(batch)[:1], State.RUNNING)

    stop_batch(batch=batch, by=by, now=now)
    settle(batch_id=batch.pk, now=now)

    assert states_of(batch) == ["stopping", "canceled", "canceled", "canceled"]
    end(runs_of(batch)[:1], State.CANCELED)
    settle(batch_id=batch.pk, now=now)
    assert Batch.objects.get().finished_at == now


@pytest.mark.django_db
def test_the_end_of_job_and_schedule_does_not_disturb_it(job: Job, by: Actor) -> None:
    noon = datetime.fromisoformat("2026-11-30T12:00:00+00:00")
    first = datetime.fromisoformat("2026-11-20T00:05:00+00:00")
    schedule = schedule_of(job)
    batch = start_backfill(schedule=schedule, by=by, now=noon, start=first, end=noon, concurrency=1)
    before = [run.spec for run in runs_of(batch)]
    schedule.delete()
    job.delete()
    batch.refresh_from_db()
    end(runs_of(batch)[:1])

    assert release(batch=batch, now=noon) == 1
    assert [run.spec for run in runs_of(batch)] == before


@pytest.mark.django_db
def test_an_edit_of_the_job_does_not_reach_it(job: Job, by: Actor, now: datetime) -> None:
    batch = start_inputs(job=job, rows=rows(2), by=by, now=now, concurrency=1)
    Job.objects.filter(pk=job.pk).update(memory_mb=999, parameters={"keyword": "other"}, priority=1)
    end(runs_of(batch)[:1])
    release(batch=batch, now=now)

    second = runs_of(batch)[1]
    assert (second.state, second.priority, second.spec["limits"]["memory_mb"]) == (State.QUEUED, 5, 512)


@pytest.mark.django_db
def test_groups_of_one_job_do_not_mix(job: Job, by: Actor, now: datetime) -> None:
    one = start_inputs(job=job, rows=rows(3), by=by, now=now, concurrency=1)
    other = start_inputs(job=job, rows=rows(3), by=by, now=now, concurrency=1)
    end(runs_of(one)[:1])
    settle(batch_id=one.pk, now=now)

    assert states_of(one) == ["succeeded", "queued", "waiting"]
    assert states_of(other) == ["queued", "waiting", "waiting"]


@pytest.mark.django_db(transaction=True)
def test_however_many_look_at_once_no_more_than_allowed_are_under_way(job: Job, by: Actor) -> None:
    batch = start_inputs(job=job, rows=rows(24), by=by, now=timezone.now(), concurrency=3)
    most = []

    def work(own: Callable[[], Run | None]) -> None:
        try:
            while run := own():
                frm = (State.QUEUED,)
                if not move(run_id=run.pk, to=State.CANCELED, frm=frm, now=timezone.now(), actor=SYSTEM):
                    continue
                settle(batch_id=batch.pk, now=timezone.now())
                active = Run.objects.filter(batch=batch, state__in=ACTIVE).exclude(state=State.WAITING)
                most.append(active.count())
        finally:
            connection.close()

    def next_run() -> Run | None:
        return Run.objects.filter(batch=batch, state=State.QUEUED).order_by("?").first()

    threads = [threading.Thread(target=work, args=(next_run,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settle(batch_id=batch.pk, now=timezone.now())

    assert set(states_of(batch)) == {"canceled"}
    assert max(most) <= 3
    # Each got its turn once.
    assert RunEvent.objects.filter(run__batch=batch, kind="turn").count() == 24
    assert Batch.objects.get().finished_at is not None
