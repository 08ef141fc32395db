"""Repair jobs: which may be chosen, and their runs after a run has used up its attempts."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.accounts.rights import allowed, can
from apps.core.actors import SYSTEM
from apps.core.errors import PanelError
from apps.jobs.models import Job
from apps.jobs.policies import Faults
from apps.jobs.selectors import version_of
from apps.jobs.services.graph import followers, lock_graph, path_text, way_between
from apps.jobs.services.running import run_job
from apps.runs.models import Run, RunEvent
from apps.runs.states import Trigger
from apps.runs.sweeps import repair_done, runs_with_repair_due

logger = logging.getLogger(__name__)

# How a repair run learns what it is for: a parameter, where the spider has it, and always a variable.
PARAMETER, VARIABLE = "failed_run", "CLAW_FAILED_RUN"


def take_repair_job(job: Job, changes: dict[str, Any], *, by: User, faults: Faults) -> None:
    """A job of the same project that this person may run, and that does not lead back here."""
    if "repair_job" not in changes:
        return
    wanted = changes["repair_job"]
    key = wanted.pk if isinstance(wanted, Job) else wanted
    if key is None or key == job.repair_job_id:
        # Who may not run the chosen one may still save the rest of the form.
        job.repair_job_id = key
        return
    lock_graph(project_id=job.project_id)
    found = _visible(key, by)
    if found is None:
        faults["repair_job"] = [_("There is no such job.")]
    elif found.project_id != job.project_id:
        faults["repair_job"] = [_("A repair job belongs to the same project.")]
    elif not can(by, "run", found):
        faults["repair_job"] = [_("You may not run this job.")]
    elif circle := _circle(job, found):
        path = path_text(circle, by, known=[job])
        faults["repair_job"] = [_("Repairs would go round in a circle: %(path)s.") % {"path": path}]
    else:
        job.repair_job = found


def _visible(key: Any, by: User) -> Job | None:
    if isinstance(key, bool) or not isinstance(key, int) or not 0 < key < 2**63:
        return None
    return allowed(by, "view", Job).filter(pk=key).first()


def _circle(job: Job, repair: Job) -> list[int]:
    """Ids along the way back to `job`, by repairs and by jobs that follow others; empty when none leads there."""
    if job._state.adding:
        return []
    graph = followers(project_id=job.project_id, without_repair_of=job.pk)
    way = way_between(start=repair.pk, goal=job.pk, graph=graph)
    return [job.pk, *way] if way else []


# -- running them -------------------------------------------------------------------------------------------------


def start_repairs(*, now: datetime) -> int:
    """Ask for the repair of every run that is due for one; how many were started. To be called again does no harm."""
    started = 0
    for run in runs_with_repair_due():
        try:
            started += _start_repair(run.pk, now)
        except Exception:
            # One that is broken must not keep the others waiting; it is tried again with the next round.
            logger.exception("the repair of run %s could not be started", run.pk)
    return started


@transaction.atomic
def _start_repair(run_id: int, now: datetime) -> bool:
    """The mark goes in the transaction that makes the repair run; what cannot be run is said in the failed run."""
    failed = Run.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=run_id, repair_due=True).first()
    if failed is None:
        return False
    repair_done(run_id=run_id)
    if failed.trigger == Trigger.REPAIR:
        return False
    job = (
        Job.objects.select_related("spider__current_version", "version")
        .filter(pk=failed.spec.get("repair_job"))
        .first()
    )
    if job is None:
        _note(failed, now, "repair_refused", {"error": _("The repair job has been deleted.")})
        return False
    try:
        with transaction.atomic():
            run, new = run_job(
                job=job,
                by=SYSTEM,
                now=now,
                trigger=Trigger.REPAIR,
                parameters=_parameters(job, run_id),
                idempotency_key=f"repair:{run_id}",
                extra_env={VARIABLE: str(run_id)},
            )
    except PanelError as error:
        logger.warning("repair of run %s by job %s was refused: %s", run_id, job.pk, error.message)
        _note(failed, now, "repair_refused", {"job": job.name, "error": error.message})
        return False
    if new:
        _note(failed, now, "repair_run", {"job": job.name, "run": run.pk})
        _note(run, now, "repair_of", {"run": run_id})
    return new


def _parameters(job: Job, run_id: int) -> dict[str, int | str]:
    version = version_of(job)
    rule = (version.parameter_schema.get("properties") or {}).get(PARAMETER) if version else None
    if not isinstance(rule, dict):
        return {}
    return {PARAMETER: str(run_id) if rule.get("type") == "string" else run_id}


def _note(run: Run, now: datetime, reason: str, detail: dict[str, Any]) -> None:
    RunEvent.objects.create(
        run=run, at=now, kind="repair", attempt=run.attempt, reason=reason, detail=detail, actor=str(SYSTEM)
    )
