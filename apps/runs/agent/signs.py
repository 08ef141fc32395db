"""When a run that another worker followed has last shown that it lives."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from apps.engine import spool
from apps.runs.models import Attempt, Item, LogChunk, Run, RunEvent
from apps.runs.states import State


def last_sign_of_life(run: Run, attempt: Attempt, now: datetime) -> datetime:
    """By what is stored, for the file times of this machine are worth nothing once its clock was set.

    Requests are only counted, so the file that they come in is asked too: it may say too much (it also takes figures
    that a hung program goes on sending), never too little.
    """
    begun = RunEvent.objects.filter(run=run, attempt=attempt.number, to_state=State.RUNNING)
    chunks = LogChunk.objects.filter(month=run.month, run_id=run.pk, attempt=attempt.number)
    items = Item.objects.filter(month=run.month, run_id=run.pk, attempt=attempt.number)
    signs = [
        attempt.started_at,
        begun.order_by("-pk").values_list("at", flat=True).first(),
        chunks.order_by("-first_line").values_list("last_at", flat=True).first(),
        items.order_by("-seq").values_list("created_at", flat=True).first(),
        _written(Path(attempt.run_dir) / spool.RECORDS, now) if run.requests else None,
    ]
    return min(now, max(sign for sign in signs if sign is not None))


def _written(path: Path, now: datetime) -> datetime | None:
    try:
        at = path.stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(at, now.tzinfo)
