"""Runs, their history and their use of resources."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from apps.accounts import rights
from apps.accounts.models import User
from apps.runs.models import Attempt, LogChunk, ResourceSample, Run, RunEvent
from apps.runs.states import TERMINAL, State

MAX_SAMPLES = 1000


def visible_runs(user: User | AnonymousUser, action: str = "view") -> QuerySet[Run]:
    """The runs on which the user may do `action`, unordered."""
    return rights.allowed(user, action, Run)


def visible_runs_for_page(user: User | AnonymousUser, action: str = "view") -> QuerySet[Run]:
    """The same with everything a page names joined in, so that showing a run costs one query."""
    return visible_runs(user, action).select_related("spider", "version", "job", "project", "node", "requested_by")


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What a live page needs to know of a run."""

    state: str
    attempt: int
    lines: int
    items: int
    requests: int
    errors: int
    warnings: int
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    def payload(self) -> dict[str, Any]:
        return asdict(self)


def run_status(run_id: int) -> RunStatus | None:
    fields = tuple(RunStatus.__dataclass_fields__)
    row = Run.objects.filter(pk=run_id).values_list(*fields).first()
    return RunStatus(*row) if row else None


def last_line(run: Run) -> int:
    """Number of the last stored line, 0 without any."""
    newest = LogChunk.objects.filter(month=run.month, run_id=run.pk).order_by("-first_line")
    return newest.values_list("last_line", flat=True).first() or 0


def events(run: Run) -> QuerySet[RunEvent]:
    return RunEvent.objects.filter(run=run).order_by("id")


def attempts(run: Run) -> QuerySet[Attempt]:
    return Attempt.objects.filter(run=run).select_related("node").order_by("number")


def file_stem(run: Run, attempt: int | None) -> str:
    """How downloads of a run, or of one attempt of it, are named."""
    return f"run-{run.pk}" if attempt is None else f"run-{run.pk}-attempt-{attempt}"


# Why an attempt that another one followed had ended.
_TIMEOUTS = frozenset({"run_timeout", "idle_timeout", "start_timeout", "total_timeout"})
_LOSSES = frozenset({"node_lost", "worker_lost", "container_vanished"})


def attempt_state(run: Run, attempt: Attempt) -> str:
    """The last attempt is as its run is; of those before it the reason says how they ended."""
    if attempt.number == run.attempt and (attempt.finished_at is None or run.state in TERMINAL):
        return run.state
    if attempt.reason in _TIMEOUTS:
        return State.TIMED_OUT
    return State.LOST if attempt.reason in _LOSSES else State.FAILED


def last_event(run: Run, **which: str) -> RunEvent | None:
    """The newest event of the run that is like `which`, for example `to_state="retry_wait"`."""
    return RunEvent.objects.filter(run=run, **which).order_by("-id").first()


def samples(run: Run, *, limit: int = MAX_SAMPLES) -> list[ResourceSample]:
    """Oldest first; of a long run every n-th sample and always the newest."""
    ids = list(ResourceSample.objects.filter(run=run).order_by("at", "id").values_list("pk", flat=True))
    step = -(-len(ids) // limit)
    if step > 1:
        ids = sorted({*ids[::step], ids[-1]})
        return list(ResourceSample.objects.filter(pk__in=ids).order_by("at", "id"))
    return list(ResourceSample.objects.filter(run=run).order_by("at", "id")[:limit])


def is_active(run: Run) -> bool:
    return State(run.state) not in TERMINAL
