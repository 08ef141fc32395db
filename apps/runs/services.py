"""Asking for runs, and for their stop, pause and return."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.background import enqueue
from apps.core.errors import Conflict, Invalid
from apps.core.many_rows import insert_many
from apps.runs import queue
from apps.runs.models import Batch, Run, RunEvent
from apps.runs.moves import StaleRun, announce, announce_new, move
from apps.runs.orders import RunOrder, as_typed, order_of
from apps.runs.selectors.waiting import why_waiting
from apps.runs.states import TERMINAL, State, Trigger

__all__ = [
    "RunFinished",
    "RunOrder",
    "StaleRun",
    "move",
    "request_run",
    "request_runs",
    "request_stop",
    "rerun",
    "why_waiting",
]

_AT_REST = (State.WAITING, State.QUEUED, State.RETRY_WAIT)
_MOVING = (State.STARTING, State.RUNNING, State.PAUSED)


class RunFinished(Conflict):
    """What was asked for is not possible any more."""

    code = "run_finished"


class NotPossible(Conflict):
    """The state of the run does not allow it."""

    code = "not_possible_now"


class KeyUsed(Conflict):
    """The idempotency key belongs to another order."""

    code = "idempotency_key_used"


@transaction.atomic
def request_run(
    *, order: RunOrder, by: Actor, now: datetime, idempotency_key: str | None = None, waiting: bool = False
) -> tuple[Run, bool]:
    """Queue a run, or let it wait for what its order lacks. With a key seen before in the project, the run of then and
    False."""
    if idempotency_key is not None:
        idempotency_key = _checked_key(idempotency_key)
        known = _run_of_key(order, idempotency_key)
        if known is not None:
            return known, False
    run = _new_run(order, by, now, waiting=waiting, idempotency_key=idempotency_key)
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        # Two requests with one key at once: the unique constraint let one through.
        known = _run_of_key(order, idempotency_key) if idempotency_key is not None else None
        if known is None:
            raise
        return known, False
    RunEvent.objects.create(run=run, at=now, to_state=run.state, actor=str(by)[:200])
    transaction.on_commit(lambda: announce(run.pk, "", State(run.state)))
    if waiting:
        return run, True
    if queue.refuse_unplaceable(now=now, run_ids=[run.pk]):
        run.refresh_from_db()
    else:
        enqueue("runs.wake")
    return run, True


@transaction.atomic
def request_runs(
    *,
    orders: Sequence[RunOrder],
    by: Actor,
    now: datetime,
    waiting: bool = False,
    skipped: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
) -> list[Run]:
    """The same for many at once, without keys, in a few statements. Runs that wait are not announced one by one.

    Those at the positions `skipped` end at once, as by an overlap, for the reason in the values.
    """
    runs = [_new_run(order, by, now, waiting=waiting) for order in orders]
    events = [RunEvent(run=run, at=now, to_state=run.state, actor=str(by)[:200]) for run in runs]
    for position, detail in skipped.items():
        run = runs[position]
        events.append(_skip_at_once(run, by, now, detail))
    insert_many(runs)
    for event in events:
        event.run_id = event.run.pk
    insert_many(events)
    if waiting or not runs:
        return runs
    states = {run.pk: run.state for run in runs}
    transaction.on_commit(lambda: announce_new(states))
    queued = [run.pk for run in runs if run.state == State.QUEUED]
    if queued:
        queue.refuse_unplaceable(now=now, run_ids=queued)
        enqueue("runs.wake")
    return runs


def _skip_at_once(run: Run, by: Actor, now: datetime, detail: Mapping[str, Any]) -> RunEvent:
    """What `move` would write, before there is a row."""
    before, run.state = run.state, State.SKIPPED
    run.reason, run.detail, run.finished_at = "overlap_skip", dict(detail), now
    return RunEvent(
        run=run,
        at=now,
        from_state=before,
        to_state=run.state,
        reason=run.reason,
        detail=run.detail,
        actor=str(by)[:200],
    )


def _new_run(order: RunOrder, by: Actor, now: datetime, *, waiting: bool, idempotency_key: str | None = None) -> Run:
    return Run(
        pk=order.run_id,
        project=order.project,
        job_id=order.job_id,
        job_name=order.job_name,
        state=State.WAITING if waiting else State.QUEUED,
        spider=order.version.spider,
        version=order.version,
        priority=order.priority,
        trigger=order.trigger,
        requested_by_id=by.user_id,
        idempotency_key=idempotency_key,
        request_id=uuid.uuid4(),
        spec=order.spec(),
        **order.columns(now),
        month=now.date().replace(day=1),
        queued_at=now,
    )


def _checked_key(key: str) -> str:
    if not key or len(key) > 200 or not key.isprintable():
        raise Invalid(_("An idempotency key is 1 to 200 printable characters."))
    return key


def _run_of_key(order: RunOrder, key: str) -> Run | None:
    run = Run.objects.filter(project=order.project, idempotency_key=key).first()
    if run is None:
        return None
    same = run.job_id == order.job_id and run.version_id == order.version.pk and run.priority == order.priority
    # Templates as they were typed: filled in at another moment, the same order has other dates.
    if not same or as_typed(run.spec) != as_typed(order.spec()):
        raise KeyUsed(_("This idempotency key was used for another run, %(id)s.") % {"id": run.pk})
    return run


def join_batch(*, run: Run, batch: Batch, key: str) -> None:
    """A run that was asked for by itself becomes the part `key` of a batch."""
    Run.objects.filter(pk=run.pk).update(batch=batch, batch_key=key)
    run.batch, run.batch_key = batch, key


@transaction.atomic
def request_stop(
    *, run: Run, by: Actor, now: datetime, cause: str = "user", detail: Mapping[str, Any] | None = None
) -> None:
    """End a run from any active state; a second request changes nothing. It is over when its end is proven.

    `detail` are values for the sentence of the cause.
    """
    known: dict[str, Any] = {
        "run_id": run.pk,
        "now": now,
        "actor": by,
        "reason": "stopped_by_user" if cause == "user" else cause,
        "detail": {**({"by": by.name} if cause == "user" else {}), **(detail or {})},
        "stop_requested_at": now,
        "stop_cause": cause,
    }
    stopped = move(to=State.CANCELED, frm=_AT_REST, **known)
    if not stopped and move(to=State.STOPPING, frm=_MOVING, **known):
        stopped = True
        enqueue("runs.wake")
    run.refresh_from_db()
    if not stopped and run.state in TERMINAL:
        over = {"id": run.pk, "state": run.get_state_display()}
        raise RunFinished(_("Run %(id)s is over already: %(state)s.") % over)


@transaction.atomic
def request_kill(*, run: Run, by: Actor, now: datetime) -> None:
    """The second step of a stop: no more grace. A run that nobody asked to stop is asked now."""
    request_stop(run=run, by=by, now=now)
    if run.state != State.STOPPING:
        return
    asked = Run.objects.filter(pk=run.pk, state=State.STOPPING, kill_requested_at=None).update(kill_requested_at=now)
    if asked:
        RunEvent.objects.create(
            run_id=run.pk, at=now, kind="kill", attempt=run.attempt, actor=str(by)[:200], detail={"by": by.name}
        )
        enqueue("runs.wake")
        run.refresh_from_db()


@transaction.atomic
def request_pause(*, run: Run, by: Actor, now: datetime) -> None:
    """Freeze a running run; its limits stop. Its agent moves it to `paused` when it is proven frozen."""
    asked = Run.objects.filter(pk=run.pk, state=State.RUNNING, pause_requested_at=None).update(pause_requested_at=now)
    run.refresh_from_db()
    if asked:
        RunEvent.objects.create(run_id=run.pk, at=now, kind="pause", attempt=run.attempt, actor=str(by)[:200])
        enqueue("runs.wake")
    elif run.state not in (State.RUNNING, State.PAUSED):
        raise NotPossible(_("Run %(id)s does not run: it cannot be paused.") % {"id": run.pk})


@transaction.atomic
def request_resume(*, run: Run, by: Actor, now: datetime) -> None:
    """Let a paused run go on, or take back a pause that was asked for."""
    asked = Run.objects.filter(
        pk=run.pk, state__in=(State.RUNNING, State.PAUSED), pause_requested_at__isnull=False
    ).update(pause_requested_at=None)
    run.refresh_from_db()
    if asked:
        RunEvent.objects.create(run_id=run.pk, at=now, kind="resume", attempt=run.attempt, actor=str(by)[:200])
        enqueue("runs.wake")
    elif run.state not in (State.RUNNING, State.PAUSED):
        raise NotPossible(_("Run %(id)s is not paused.") % {"id": run.pk})


def rerun(*, run: Run, by: Actor, now: datetime, trigger: Trigger, parameters: Mapping[str, Any] | None = None) -> Run:
    """The same order once more: same version and limits, same parameters unless `parameters` are given (checked ones).

    Another run of the job that is active does not hinder it: a person has just looked at this one.
    """
    order = order_of(run, trigger=trigger, parameters=parameters)
    made, _new = request_run(order=order, by=by, now=now, waiting=order.pending)
    if order.pending:
        enqueue("jobs.prepare", run_id=made.pk)
    return made
