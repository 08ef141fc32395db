"""The ledger of due times, and why a time is not in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from apps.jobs.models import Firing, Job, Schedule


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Rows newest first; `following` is the cursor of the next page, empty when there is none."""

    rows: list[Firing]
    following: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What became, or becomes, of a time by one schedule: a row of the ledger, or a sentence alone."""

    schedule: Schedule | None
    firing: Firing | None
    sentence: str


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
    """Of a job the caller was allowed to see: since <= due < until, with `schedule` and `run`."""
    raise NotImplementedError


def answers_for(job: Job, instant: datetime, *, now: datetime) -> list[Answer]:
    """Of each schedule of the job: why it did (not) fire in that minute."""
    raise NotImplementedError


def why_not_fired(job: Job, instant: datetime, *, now: datetime) -> str:
    """The same in one text."""
    return " ".join(answer.sentence for answer in answers_for(job, instant, now=now))
