"""The only writer of `Run.state`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.errors import Conflict
from apps.runs import live
from apps.runs.models import Run, RunEvent
from apps.runs.signals import run_changed
from apps.runs.states import MOVES, TERMINAL, State

logger = logging.getLogger(__name__)

# What the page of a run needs to know at once.
_SHOWN = (
    "state",
    "reason",
    "detail",
    "lines",
    "warnings",
    "errors",
    "items",
    "items_rejected",
    "requests",
    "exit_code",
    "attempt",
    "started_at",
    "finished_at",
)


class StaleRun(Conflict):
    """The run has moved on, or another agent holds it."""

    code = "stale_run"

    def __init__(self, run_id: int) -> None:
        super().__init__(_("Run %(id)s has changed in the meantime.") % {"id": run_id})


@transaction.atomic
def move(
    *,
    run_id: int,
    to: State,
    frm: Collection[State],
    now: datetime,
    actor: Actor,
    token: int | None = None,
    reason: str = "",
    new_token: int | None = None,
    detail: dict[str, Any] | None = None,
    **fields: Any,
) -> bool:
    """Change the state and write the event in one transaction. False: someone else was first, nothing is changed.

    `token` guards, `new_token` takes the run from whoever held it. `fields` are further columns to set with it;
    `reason` and `detail` are kept on the run when it ends, and while it waits for its next attempt.
    """
    illegal = [state for state in frm if to not in MOVES.get(state, ())]
    if illegal:
        raise ValueError(f"No run may go from {', '.join(illegal)} to {to}.")
    guarded = Run.objects.filter(pk=run_id, state__in=list(frm))
    if token is not None:
        guarded = guarded.filter(token=token)
    # The lock makes the old state known for the event; the guard is checked again after any wait for it.
    before = guarded.select_for_update(no_key=True).values_list("state", "attempt").first()
    if before is None:
        return False
    fields["state"] = to
    if new_token is not None:
        fields["token"] = new_token
    if to in TERMINAL or to == State.RETRY_WAIT:
        fields |= {"reason": reason, "detail": detail or {}, "lease_until": None}
    if to in TERMINAL:
        fields.setdefault("finished_at", now)
    elif to == State.QUEUED:
        fields |= {"reason": "", "detail": {}}
    guarded.update(**fields)
    RunEvent.objects.create(
        run_id=run_id,
        at=now,
        from_state=before[0],
        to_state=to,
        attempt=fields.get("attempt", before[1]),
        reason=reason,
        detail=detail or {},
        actor=str(actor)[:200],
    )
    transaction.on_commit(lambda: announce(run_id, before[0], to))
    return True


def announce(run_id: int, frm: str, to: str) -> None:
    """Tell pages and listeners; they would find out by themselves."""
    _signal(run_id, frm, to)
    live.notice(run_id, to)
    shown = Run.objects.filter(pk=run_id).values(*_SHOWN).first()
    if shown is not None:
        live.publish_state(run_id, shown)


def announce_new(states: Mapping[int, str]) -> None:
    """The same for runs that are new, in one go; nobody looks at the page of such a run yet."""
    for run_id, state in states.items():
        _signal(run_id, "", state)
    live.notices(states)


def _signal(run_id: int, frm: str, to: str) -> None:
    for error in (answer for _receiver, answer in run_changed.send_robust(Run, run_id=run_id, frm=frm, to=to)):
        if isinstance(error, Exception):
            logger.error("a listener of run %s failed", run_id, exc_info=error)
