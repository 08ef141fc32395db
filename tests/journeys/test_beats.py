"""Two and three beats fire the same schedules while they are killed, frozen and cut off from the database."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection

from apps.jobs.models import Firing, Schedule
from apps.jobs.selectors.due import rule_for
from apps.runs.models import Run
from tests.chaos.slots import Fired, Made, Timed, each_time_once, in_time
from tests.journeys.beats import Beats, beats, cut_sessions
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
