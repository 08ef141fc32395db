"""The ledger of due times, and why a time is not in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Q

from apps.jobs.models import Firing, Job

LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Rows newest first; `following` is the cursor of the next page, empty when there is none."""

    rows: list[Firing]
    following: str


def ledger(
    job: Job,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    outcome: str = "",
    schedule_id: int | None = None,
    after: str = "",
    limit: int = 50,
) -> LedgerPage:
    """Of a job the caller was allowed to see: since <= due < until, with `schedule` and `run`. ValueError: the cursor
    is none of ours."""
    rows = Firing.objects.filter(job=job).select_related("schedule", "run")
    if since is not None:
        # A row that stands for many times begins with the first of them.
        rows = rows.filter(Q(scheduled_for__gte=since) | Q(until__gte=since))
    if until is not None:
        rows = rows.filter(scheduled_for__lt=until)
    if outcome:
        rows = rows.filter(outcome=outcome)
    if schedule_id is not None:
        rows = rows.filter(schedule=schedule_id)
    if after:
        at, pk = _read(after)
        rows = rows.filter(Q(scheduled_for__lt=at) | Q(scheduled_for=at, pk__lt=pk), scheduled_for__lte=at)
    found = list(rows.order_by("-scheduled_for", "-pk")[: limit + 1])
    more = len(found) > limit
    return LedgerPage(found[:limit], _cursor(found[limit - 1]) if more else "")


def _cursor(row: Firing) -> str:
    """Stays right while rows come in: they are newer, or told apart by their numbers."""
    return f"{row.scheduled_for.astimezone(UTC).strftime('%Y%m%dT%H%M%S.%f')}~{row.pk}"


def _read(cursor: str) -> tuple[datetime, int]:
    at, _tilde, pk = cursor.partition("~")
    if not (pk.isascii() and pk.isdigit() and int(pk[:20]) <= LARGEST_KEY):
        raise ValueError(cursor)
    return datetime.strptime(at, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC), int(pk)
