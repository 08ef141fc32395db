"""What a preview shows is what is fired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.jobs.models import Firing
from apps.jobs.selectors.due import rule_for
from apps.jobs.services.firing import Keeper, look
from apps.jobs.timing import preview
from tests.apps.jobs.firing.timed import schedule

pytestmark = pytest.mark.django_db

DAYS = 30


@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 2 * * *"])
@pytest.mark.parametrize("start", [datetime(2026, 3, 15, tzinfo=UTC), datetime(2026, 10, 12, tzinfo=UTC)])
def test_a_preview_is_what_thirty_days_fire(cron: str, start: datetime) -> None:
    """Over both changes of Berlin's clock."""
    own = schedule(cron=cron, timezone="Europe/Berlin", now=start)
    shown = [time.at for time in preview(rule_for(own), "Europe/Berlin", start + timedelta(seconds=1), 120)]
    end = start + timedelta(days=DAYS)
    keeper = Keeper()
    while own.next_fire_at is not None and own.next_fire_at <= end:
        look(keeper=keeper, now=own.next_fire_at - timedelta(seconds=1))
        look(keeper=keeper, now=own.next_fire_at)
        own.refresh_from_db(fields=["next_fire_at"])
    fired = Firing.objects.filter(schedule=own, outcome="fired").order_by("scheduled_for")
    assert list(fired.values_list("scheduled_for", flat=True)) == [at for at in shown if at <= end]
