"""Two and three beats fire the same schedules while they are killed, frozen and cut off from the database."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.db import connection
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from apps.core import valkey
from apps.jobs.models import Firing, Schedule
from apps.jobs.selectors.due import rule_for
from apps.runs.models import Run
from tests.apps.jobs.firing.timed import schedule
from tests.chaos.slots import Fired, Made, Timed, each_time_once, in_time
from tests.journeys.beats import Beat, Beats, beats, cut_sessions
from tests.many_schedules import every, many_jobs, many_schedules

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]

SCHEDULES = 200
LATE = timedelta(seconds=5)


@pytest.fixture
def clocks() -> Iterator[Beats]:
    with beats() as made:
        yield made


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


def every_two_seconds(number: int) -> list[Schedule]:
    start = database_now().replace(microsecond=0)
    return many_schedules(many_jobs(number, now=start), every(2, start), now=start)


def assert_each_time_once(schedules: list[Schedule], *, since: datetime, until: datetime) -> None:
    timed = [Timed(each.pk, rule_for(each)) for each in schedules]
    names = ("schedule_id", "scheduled_for", "outcome", "reason", "run_id", "decided_at", "until", "times")
    ledger = [Fired(*row) for row in Firing.objects.filter(scheduled_for__lte=until).values_list(*names)]
    runs = Run.objects.filter(schedule__isnull=False, scheduled_for__lte=until)
    made = [Made(*row) for row in runs.values_list("pk", "schedule_id", "scheduled_for")]
    assert each_time_once(timed, ledger, made, since=since, until=until)[:5] == []
    assert in_time(ledger, most=LATE)[:5] == []
    assert {row.outcome for row in ledger} == {"fired"}


def torment(clocks: Beats, chance: random.Random, seconds: float) -> None:
    """One that looks at the clock is left each time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.2, 0.7))
        for beat in [each for each in clocks.all if each.frozen and chance.random() < 0.4]:
            beat.thaw()
        ready = [beat for beat in clocks.all if beat.is_ready]
        if len(ready) < 2:
            continue
        victim = chance.choice(ready)
        match chance.choice(("kill", "freeze", "freeze", "cut")):
            case "kill":
                victim.kill()
                clocks.all.remove(victim)
                clocks.start()
            case "freeze":
                victim.freeze()
            case "cut":
                cut_sessions(victim.name)


def test_each_time_is_fired_once_whatever_befalls_the_beats(clocks: Beats) -> None:
    """First two of them, then three."""
    chance = random.Random(4)  # noqa: S311  # the same trouble each time
    clocks.start_ready(2)
    schedules = every_two_seconds(SCHEDULES)
    since = schedules[0].created_at
    torment(clocks, chance, 10)
    clocks.start()
    torment(clocks, chance, 12)
    until = database_now()
    for beat in clocks.all:
        beat.thaw()
    time.sleep(LATE.total_seconds())
    clocks.close()
    assert_each_time_once(schedules, since=since, until=until)


# -- one of them, in the middle of a due time -----------------------------------------------------------------------

_DAWDLE = """
CREATE FUNCTION test_dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$;
CREATE TRIGGER test_dawdle BEFORE UPDATE OF next_fire_at ON jobs_schedule FOR EACH ROW EXECUTE FUNCTION test_dawdle();
"""
_HASTEN = "DROP FUNCTION IF EXISTS test_dawdle() CASCADE"


@pytest.fixture
def dawdling() -> Iterator[None]:
    """Between the insert of the run and the moving on of its schedule lies a second."""
    with connection.cursor() as cursor:
        cursor.execute(_DAWDLE)
        yield
        cursor.execute(_HASTEN)


def the_one_in_between(clocks: Beats, seconds: float = 20) -> Beat:
    """The beat that has inserted and not yet moved on."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT application_name FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
            names = {name for (name,) in cursor.fetchall()}
        for beat in clocks.all:
            if beat.name in names:
                return beat
        time.sleep(0.01)
    raise AssertionError(f"no beat fires\n{clocks.log()[-3000:]}")


def wait_for(what: Callable[[], bool], clocks: Beats, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, clocks.log()[-4000:]
        time.sleep(0.05)


@pytest.mark.usefixtures("dawdling")
def test_a_beat_that_dies_or_freezes_between_insert_and_advance_leaves_the_time_to_another(clocks: Beats) -> None:
    clocks.start_ready(2)
    job = many_jobs(1, now=database_now())[0]

    def due_now() -> Schedule:
        start = database_now()
        return schedule(job=job, now=start, at=start + timedelta(seconds=3))

    frozen = due_now()
    victim = the_one_in_between(clocks)
    victim.freeze()
    wait_for(Firing.objects.filter(schedule=frozen).exists, clocks)
    victim.thaw()
    killed = due_now()
    victim = the_one_in_between(clocks)
    victim.kill()
    wait_for(Firing.objects.filter(schedule=killed).exists, clocks)
    for each in (frozen, killed):
        row = Firing.objects.get(schedule=each)
        assert (row.outcome, row.run_id) == ("fired", Run.objects.get(schedule=each).pk)
        assert row.decided_at - row.scheduled_for < LATE


def test_ordinary_tasks_go_out_beside_the_clock_and_both_outlive_a_loss_of_the_database(clocks: Beats) -> None:
    queue = f"beside-{os.getpid()}"
    broker = valkey.client(settings.REDIS_URL)
    second = IntervalSchedule.objects.create(every=1, period="seconds")
    PeriodicTask.objects.create(name="beside", task="tests.beside", interval=second, queue=queue)
    (beat,) = clocks.start_ready(1)
    wait_for(lambda: broker.llen(queue) > 0, clocks)
    start = database_now()
    own = schedule(job=many_jobs(1, now=start)[0], now=start, every=1, anchor_at=start)
    wait_for(Firing.objects.filter(schedule=own).exists, clocks)
    assert cut_sessions(beat.name) >= 2
    fired, sent = Firing.objects.filter(schedule=own).count(), broker.llen(queue)
    wait_for(lambda: Firing.objects.filter(schedule=own).count() > fired + 1, clocks)
    wait_for(lambda: broker.llen(queue) > sent + 1, clocks)
    told = {json.loads(body)["headers"]["task"] for body in broker.lrange(queue, 0, -1)}
    assert told == {"tests.beside"}
    beat.process.terminate()
    assert beat.process.wait(10) == 0, clocks.log()[-3000:]
    broker.delete(queue)
