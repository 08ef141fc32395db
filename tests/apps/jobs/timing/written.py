"""Cron expressions as people might write them, and what they stand for by another reader than ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from celery.schedules import crontab_parser
from hypothesis import assume
from hypothesis import strategies as st

from apps.jobs.timing import BadRule, check_cron, zone_of
from apps.jobs.timing.cron_text import FIELDS, Field
from apps.jobs.timing.zones import zone_names

MINUTE = timedelta(minutes=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TEN_YEARS = 10 * 365 * 1440

# Longer than any repeated hour.
LOOK_BACK = 300

zones = st.sampled_from(sorted(zone_names())).map(zone_of)
instants = st.integers(0, TEN_YEARS * 60).map(lambda seconds: BEGIN + timedelta(seconds=seconds))


@st.composite
def terms(draw: st.DrawFn, field: Field) -> str:
    named = {number: name.lower() for name, number in field.names.items()}
    number = st.integers(field.low, field.high).map(
        lambda value: draw(st.sampled_from([str(value), f"{value:02}", named.get(value, str(value))]))
    )
    steps = st.integers(1, field.high)
    shape = draw(st.sampled_from(("number", "range", "star", "star-step", "range-step", "number-step")))
    first, last, step = draw(number), draw(number), draw(steps)
    return {
        "number": first,
        "range": f"{first}-{last}",
        "star": "*",
        "star-step": f"*/{step}",
        "range-step": f"{first}-{last}/{step}",
        "number-step": f"{first}/{step}",
    }[shape]


@st.composite
def fields(draw: st.DrawFn, field: Field) -> str:
    # Days and months are mostly left open: otherwise nothing is ever due.
    if field in FIELDS[2:] and draw(st.booleans()):
        return "*"
    return ",".join(draw(st.lists(terms(field), min_size=1, max_size=3)))


@st.composite
def written(draw: st.DrawFn) -> str:
    """An expression that may be kept."""
    text = " ".join(draw(fields(field)) for field in FIELDS)
    try:
        check_cron(text)
    except BadRule:
        assume(False)
    return text


fixed_times = st.tuples(st.integers(0, 59), st.integers(0, 23))


class Matching:
    """Whether a local time matches, by celery's reading of each field and Debian's of the two day fields."""

    def __init__(self, expression: str) -> None:
        parts = expression.split()
        readers = (crontab_parser(60), crontab_parser(24), crontab_parser(31, 1), crontab_parser(12, 1))
        self.minutes, self.hours, self.days, self.months = (
            reader.parse(part) for reader, part in zip(readers, parts, strict=False)
        )
        self.weekdays = crontab_parser(7).parse(parts[4])
        self.both = parts[2].startswith("*") or parts[4].startswith("*")
        self.fixed = not (parts[0].startswith("*") or parts[1].startswith("*"))

    def __call__(self, local: datetime) -> bool:
        if local.minute not in self.minutes or local.hour not in self.hours or local.month not in self.months:
            return False
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.both else (day or weekday)


def minute_by_minute(expression: str, zone: ZoneInfo, start: datetime, minutes: int) -> list[datetime]:
    """The times with start < t <= start + minutes, found by looking at each minute of the wall clock."""
    matches = Matching(expression)
    due: list[datetime] = []
    # The wall clock of the minute before; what it has shown already comes no second time.
    before = start - LOOK_BACK * MINUTE
    latest = before.astimezone(zone).replace(tzinfo=None)
    for passed in range(1, minutes + LOOK_BACK + 1):
        at = before + passed * MINUTE
        local = at.astimezone(zone).replace(tzinfo=None)
        if matches.fixed:
            # Usually one; more when the clock was set forward; none when it was set back.
            shown = [latest + n * MINUTE for n in range(1, int((local - latest) / MINUTE) + 1)]
            is_due = any(matches(each) for each in shown)
            latest = max(latest, local)
        else:
            is_due = matches(local)
        if is_due and at > start:
            due.append(at)
    return due
