"""Filling in runs that wait for an answer or for another run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import Error, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from apps.core.actors import SYSTEM
from apps.core.background import enqueue
from apps.core.errors import PanelError
from apps.core.safe_http import Guard, is_public
from apps.core.templating import root_of
from apps.jobs.selectors.upstreams import outputs_before
from apps.jobs.services.parameters import check_parameters
from apps.jobs.services.rendering.calling import make_calls
from apps.jobs.services.rendering.filling import Typed, fill
from apps.jobs.services.template_names import Names
from apps.jobs.services.turns import to_queue
from apps.runs.models import Run, RunEvent
from apps.runs.orders import as_typed
from apps.runs.selectors.batches import TURN
from apps.runs.services import move
from apps.runs.states import State

logger = logging.getLogger(__name__)

# Longer than all the calls of a job may take: whoever prepares a run has it for himself for so long.
CLAIM_SECONDS = 120
MOST_AT_ONCE = 200


def request_preparation(run_id: int) -> None:
    """Have a waiting run filled in soon after the commit."""
    enqueue("jobs.prepare", run_id=run_id)


def prepare(*, run_id: int, now: datetime, upstream: Mapping[str, Any] | None = None, guard: Guard = is_public) -> str:
    """Fill in a waiting run and queue it, or let it fail for its parameters; the state it has then, "" when it was not
    waiting or is in other hands.

    Its calls are made outside of any transaction. To be called again, or by two at once, does no harm. `upstream` are
    outputs by job, where they are known already; `guard` is another only in tests.
    """
    if not _claimed(run_id):
        return ""
    run = Run.objects.select_related("version__spider", "project", "batch").get(pk=run_id)
    try:
        pending = bool(run.spec.get("pending"))
        spec = _filled(run, now, upstream, guard) if pending else run.spec
    except PanelError as error:
        return _fail(run, now, error.message, error.fields)
    except Error:
        # The database is away: the claim ends by itself, and the sweep tries again.
        raise
    except Exception:
        logger.exception("run %s could not be prepared", run_id)
        return _fail(run, now, _("An unexpected fault, see the log."), {})
    with transaction.atomic():
        moved = to_queue(run_id=run_id, spec=spec, now=now, rewrite=pending, lease_until=None)
        if moved:
            enqueue("runs.wake")
    return State.QUEUED if moved else ""


def prepare_waiting(*, now: datetime) -> int:
    """Have all prepared whose hint was lost; how many. Runs of a batch wait for their turn first."""
    told = RunEvent.objects.filter(run=OuterRef("pk"), kind=TURN)
    waiting = Run.objects.filter(state=State.WAITING).filter(Q(lease_until=None) | Q(lease_until__lt=Now()))
    due = waiting.filter(Q(batch=None, spec__pending=True) | Q(Exists(told), batch__isnull=False))
    ids = list(due.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])
    for run_id in ids:
        request_preparation(run_id)
    return len(ids)


def _claimed(run_id: int) -> bool:
    free = Q(lease_until=None) | Q(lease_until__lt=Now())
    claimed = Run.objects.filter(free, pk=run_id, state=State.WAITING)
    return bool(claimed.update(lease_until=Now() + timedelta(seconds=CLAIM_SECONDS)))


def _filled(run: Run, now: datetime, upstream: Mapping[str, Any] | None, guard: Guard) -> dict[str, Any]:
    """The order with all its values. Raises PanelError."""
    spec, typed = run.spec, Typed.read(run.spec.get("templates") or {})
    schema = run.version.parameter_schema
    roots = {root_of(name) for name in typed.names()}
    if upstream is None:
        upstream = outputs_before(run)
    names = _names(run, now, upstream=upstream)
    if "call" in roots:
        answers = make_calls(spec.get("calls") or {}, names=names, secrets=spec.get("secrets") or {}, guard=guard)
        names = _names(run, now, upstream=upstream, calls=answers)
    raw = as_typed(spec)
    done = fill(
        schema=schema,
        typed=typed,
        parameters=raw["parameters"],
        env=raw["env"],
        command=raw["command"],
        names=names,
    )
    check_parameters(schema, done.parameters, typed={}, stored=spec.get("secrets") or {})
    kept = {name: value for name, value in spec.items() if name not in ("pending", "calls")}
    later = {"later": done.later} if done.later else {}
    return {**kept, "parameters": done.parameters, "env": done.env, "command": done.command, **later}


def _names(
    run: Run, now: datetime, *, upstream: Mapping[str, Any] | None = None, calls: Mapping[str, Any] | None = None
) -> Names:
    instant = run.spec.get("instant")
    return Names(
        instant=datetime.fromisoformat(instant) if instant else run.scheduled_for or run.queued_at,
        zone=run.spec.get("zone") or "UTC",
        now=now,
        run_id=run.pk,
        job_id=run.job_id,
        job_name=run.job_name,
        spider=run.version.spider.name,
        project=run.project.name,
        upstream=upstream or {},
        calls=calls or {},
    )


def _fail(run: Run, now: datetime, sentence: str, fields: Mapping[str, list[str]]) -> str:
    """It never runs with values of another time."""
    moved = move(
        run_id=run.pk,
        to=State.FAILED,
        frm=(State.WAITING,),
        now=now,
        actor=SYSTEM,
        reason="param_error",
        detail={"error": sentence, "fields": dict(fields)},
    )
    return State.FAILED if moved else ""
