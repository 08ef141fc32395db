"""What a person may do with a run, one list for pages, API and admin: the right it needs and the states it fits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.actors import Actor
from apps.core.errors import Forbidden, NotFound, PanelError
from apps.runs import services
from apps.runs.models import Run
from apps.runs.selectors import visible_runs
from apps.runs.states import ACTIVE, TERMINAL, State, Trigger

MOST_AT_ONCE = 200
# The right each action needs.
RIGHTS: Mapping[str, str] = {"stop": "stop", "kill": "stop", "pause": "stop", "resume": "stop", "rerun": "run"}


def fits(action: str, run: Run) -> bool:
    """Whether the state of the run makes it sensible to offer the action."""
    state = run.state
    return {
        "stop": state in ACTIVE and state != State.STOPPING,
        "kill": state == State.STOPPING and run.kill_requested_at is None,
        "pause": state == State.RUNNING and run.pause_requested_at is None,
        "resume": state in (State.RUNNING, State.PAUSED) and run.pause_requested_at is not None,
        "rerun": state in TERMINAL,
    }[action]


def offered(run: Run, may: Collection[str]) -> frozenset[str]:
    """The actions whose buttons the holder of the rights `may` sees."""
    return frozenset(action for action, right in RIGHTS.items() if right in may and fits(action, run))


def perform(action: str, *, run: Run, by: Actor, now: datetime, trigger: Trigger) -> Run:
    """Do it; what is not possible any more raises. The answer is the run, or the new one."""
    if action == "rerun":
        return services.rerun(run=run, by=by, now=now, trigger=trigger)
    _REQUESTS[action](run=run, by=by, now=now)
    return run


_REQUESTS: Mapping[str, Callable[..., None]] = {
    "stop": services.request_stop,
    "kill": services.request_kill,
    "pause": services.request_pause,
    "resume": services.request_resume,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one run of many: `run` is the run, or the new one; or the refusal."""

    id: int
    run: Run | None = None
    error: PanelError | None = None


def perform_on_all(
    action: str, *, user: User | AnonymousUser, ids: Sequence[int], by: Actor, now: datetime, trigger: Trigger
) -> list[Outcome]:
    """Each in its own transaction and in the order given: what one refuses does not hinder the others."""
    wanted = list(dict.fromkeys(ids))
    seen = visible_runs(user).select_related("project", "spider", "version").in_bulk(wanted)
    permitted = set(visible_runs(user, RIGHTS[action]).filter(pk__in=wanted).values_list("pk", flat=True))
    outcomes = []
    for pk in wanted:
        try:
            run = _permitted(pk, seen, permitted)
            outcomes.append(Outcome(pk, run=perform(action, run=run, by=by, now=now, trigger=trigger)))
        except PanelError as error:
            outcomes.append(Outcome(pk, error=error))
    return outcomes


def _permitted(pk: int, seen: Mapping[int, Run], permitted: Collection[int]) -> Run:
    if pk not in seen:
        raise NotFound(_("There is no run %(id)s.") % {"id": pk})
    if pk not in permitted:
        raise Forbidden(_("You may not do this with run %(id)s.") % {"id": pk})
    return seen[pk]


def refusals() -> dict[str, str]:
    """Why a run that may be seen is refused, by right."""
    return {
        "view_log": _("You may not read the log of this run."),
        "view_data": _("You may not see the data of this run."),
        "export_data": _("You may not download the data of this run."),
        "stop": _("You may not stop this run."),
        "run": _("You may not start this run again."),
    }
