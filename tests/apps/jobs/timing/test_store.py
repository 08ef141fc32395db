"""What is accepted is kept by django-celery-beat as it is, and means the same there."""

from __future__ import annotations

import pytest
from django_celery_beat.models import CrontabSchedule
from hypothesis import given, settings

from apps.jobs.timing import check_cron, joined, zone_of
from apps.jobs.timing.cron_text import FIELDS, values_of
from apps.jobs.timing.zones import zone_names
from tests.apps.jobs.timing.written import Matching, written

COLUMNS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


def crontab(expression: str, zone: str = "UTC") -> CrontabSchedule:
    return CrontabSchedule(**dict(zip(COLUMNS, expression.split(), strict=True)), timezone=zone)


def columns_of(row: CrontabSchedule) -> dict[str, str]:
    return {name: getattr(row, name) for name in COLUMNS}


@given(text=written())
@settings(max_examples=200, deadline=None)
def test_an_accepted_expression_passes_the_checks_of_the_admin(text):
    resolved = check_cron(text)
    row = crontab(resolved)
    row.clean_fields()
    assert check_cron(joined(**columns_of(row))) == resolved
    # The list of the admin shows both.
    assert str(row)
    assert row.human_readable


@given(text=written())
@settings(max_examples=200, deadline=None)
def test_celery_reads_the_same_values(text):
    resolved = check_cron(text)
    read = Matching(resolved)
    ours = [set(values_of(part, field)) for part, field in zip(resolved.split(), FIELDS, strict=True)]
    assert ours == [read.minutes, read.hours, read.days, read.months, read.weekdays]


@pytest.mark.parametrize("seed", range(0, 60, 7))
def test_a_spread_minute_is_kept_as_a_number(seed):
    crontab(check_cron("~/20 0 * * *", seed=seed)).clean_fields()


def test_every_zone_that_is_accepted_can_be_kept():
    field = CrontabSchedule._meta.get_field("timezone")
    assert all(field.to_python(name) is zone_of(name) for name in zone_names())


@pytest.mark.django_db
def test_an_expression_comes_back_from_the_database_as_it_went_in():
    text = check_cron("5/15 22-2 1-31/3 jan-mar,oct sat-sun")
    row = crontab(text, "Asia/Shanghai")
    row.full_clean()
    row.save()
    kept = CrontabSchedule.objects.get(pk=row.pk)
    assert joined(**columns_of(kept)) == text
    assert str(kept.timezone) == "Asia/Shanghai"
