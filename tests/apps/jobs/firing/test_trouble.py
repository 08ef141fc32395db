"""One schedule that is broken, locked or slow never stops the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction

from apps.core.actors import SYSTEM
from apps.jobs.models import Dependency, Firing, Job, Schedule
from apps.jobs.services.firing import Keeper, keeping, look
from apps.jobs.services.launching import Launch
from apps.jobs.services.running import launch
from apps.runs.models import Run
from tests.apps.jobs.firing.timed import HOUR, MINUTE, NOON, ledger, schedule, ticks
from tests.factories import JobFactory, PoolFactory
from tests.many_schedules import cron, many_jobs, many_schedules

SECOND = timedelta(seconds=1)

_REFUSE = """
CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.job_name = 'poison' THEN RAISE EXCEPTION 'no such runs here'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER test_refuse BEFORE INSERT ON runs_run FOR EACH ROW EXECUTE FUNCTION test_refuse();
"""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at the next look."""
    monkeypatch.setattr(keeping, "LONGEST_SECONDS", 0.0)


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_a_database_error_in_the_middle_of_many_due_times_hits_its_own_schedule_only() -> None:
    jobs = many_jobs(5, now=NOON)
    Job.objects.filter(pk=jobs[2].pk).update(name="poison")
    schedules = many_schedules(jobs, cron(lambda _number: "* * * * *"), now=NOON)
    with connection.cursor() as cursor:
        cursor.execute(_REFUSE)
    keeper = Keeper()
    look(keeper=keeper, now=NOON + MINUTE)
    assert [len(ledger(each)) for each in schedules] == [1, 1, 0, 1, 1]
    for _again in range(4):
        look(keeper=keeper, now=NOON + MINUTE)
    assert ledger(schedules[2]) == [("12:01", "failed", "internal_error")]
    assert Run.objects.count() == 4


@pytest.mark.django_db
@pytest.mark.usefixtures("at_once")
def test_what_was_broken_for_a_moment_is_fired_after_all() -> None:
    jobs = many_jobs(2, now=NOON)
    Job.objects.filter(pk=jobs[0].pk).update(name="poison")
    schedules = many_schedules(jobs, cron(lambda _number: "* * * * *"), now=NOON)
    with connection.cursor() as cursor:
        cursor.execute(_REFUSE)
        keeper = Keeper()
        look(keeper=keeper, now=NOON + MINUTE)
        cursor.execute("DROP FUNCTION test_refuse() CASCADE")
    look(keeper=keeper, now=NOON + MINUTE)
    assert [ledger(each) for each in schedules] == [[("12:01", "fired", "")]] * 2


@pytest.mark.django_db
def test_five_hundred_that_were_missed_do_not_keep_fresh_ones_waiting() -> None:
    """Each brings an hour of minutes; the fresh ones are fired first, some of the late in between."""
    every_minute = cron(lambda _number: "* * * * *")
    back = NOON + HOUR
    old = many_schedules(many_jobs(500, now=NOON), every_minute, now=NOON, misfire="skip")
    fresh = many_schedules(many_jobs(250, now=NOON), every_minute, now=back - MINUTE)
    told: list[tuple[int, int]] = []

    def goes_on() -> bool:
        rows = Firing.objects.filter(schedule__in=fresh).count(), Firing.objects.filter(schedule__in=old).count()
        told.append(rows)
        return rows[1] < 3 * 20 * 60

    look(keeper=Keeper(goes_on=goes_on), now=back)
    first_late = next(late for _fresh, late in told if late)
    assert (250, 0) in told
    assert first_late <= 20 * 60
    ticks(back)
    assert Firing.objects.filter(schedule__in=old).count() == 500 * 60


@pytest.mark.django_db
def test_what_follows_the_commit_is_handed_over() -> None:
    kept: list[Callable[[], object]] = []
    schedule()
    before = len(connection.run_on_commit)
    with transaction.atomic():
        look(keeper=Keeper(after_commit=kept.extend), now=NOON + MINUTE)
    assert len(connection.run_on_commit) == before + 1


@pytest.mark.django_db
def test_together_and_alone_make_the_same_run() -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string"}, "pages": {"type": "integer", "default": 3}}}
    job = JobFactory(overlap="allow", spider__version__parameter_schema=schema, priority=2, queue_seconds=60)
    job.pools.add(PoolFactory(), PoolFactory())
    own = schedule(job=job, timezone="Asia/Shanghai", parameters={"day": '{{ scheduled_for | date:"%Y%m%d" }}'})
    ticks(NOON + MINUTE)
    together = Run.objects.get(schedule=own)
    wanted = Launch(
        job=job,
        trigger="schedule",
        parameters=own.parameters,
        scheduled_for=NOON + MINUTE,
        zone=own.timezone,
    )
    alone, _new = launch(wanted=wanted, by=SYSTEM, now=NOON + MINUTE)
    apart = {"id", "request_id", "schedule"}
    columns = [field.name for field in Run._meta.concrete_fields if field.name not in apart]
    alone.refresh_from_db()
    assert {name: getattr(together, name) for name in columns} == {name: getattr(alone, name) for name in columns}
    assert together.spec["parameters"] == {"day": "20260310", "pages": 3}


@pytest.mark.django_db
def test_a_job_that_others_follow_begins_a_batch() -> None:
    job = JobFactory(overlap="allow")
    after = JobFactory(project=job.project, overlap="allow")
    Dependency.objects.create(job=after, upstream=job)
    own = schedule(job=job)
    ticks(NOON + MINUTE)
    run = Run.objects.get(schedule=own)
    assert run.batch is not None
    assert {each.job_id for each in run.batch.runs.all()} == {job.pk, after.pk}
    assert ledger(own) == [("12:01", "fired", "")]


# -- locks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Runs in another session, whose transaction stays open until the end of the test."""
    over, threads = threading.Event(), []

    def start(what: Callable[[], Any]) -> None:
        begun = threading.Event()

        def run() -> None:
            with transaction.atomic():
                what()
                begun.set()
                over.wait(30)
            connections.close_all()

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        assert begun.wait(10)

    yield start
    over.set()
    for thread in threads:
        thread.join(10)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_locked_keeps_only_its_own_schedule_waiting(
    elsewhere: Callable[[Callable[[], Any]], None],
) -> None:
    busy, free = schedule(), schedule()
    elsewhere(lambda: list(Job.objects.select_for_update().filter(pk=busy.job_id)))
    look(now=NOON + MINUTE)
    assert (ledger(busy), ledger(free)) == ([], [("12:01", "fired", "")])


@pytest.mark.django_db(transaction=True)
def test_a_schedule_that_another_fires_is_left_to_it(elsewhere: Callable[[Callable[[], Any]], None]) -> None:
    taken, free = schedule(), schedule()
    elsewhere(lambda: list(Schedule.objects.select_for_update().filter(pk=taken.pk)))
    look(now=NOON + MINUTE)
    assert (ledger(taken), ledger(free)) == ([], [("12:01", "fired", "")])


@pytest.mark.django_db(transaction=True)
def test_several_clocks_at_once_fire_each_time_once() -> None:
    schedules = many_schedules(many_jobs(150, now=NOON), cron(lambda _number: "* * * * *"), now=NOON)
    start = threading.Barrier(4)

    def fire() -> None:
        start.wait(10)
        for number in range(1, 4):
            ticks(NOON + number * MINUTE, most=300)
        connections.close_all()

    threads = [threading.Thread(target=fire) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    ticks(NOON + 3 * MINUTE)
    assert Firing.objects.filter(schedule__in=schedules, outcome="fired").count() == 450
    assert Run.objects.count() == 450
