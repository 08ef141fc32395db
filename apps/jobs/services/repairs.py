"""Repair jobs: which may be chosen, and their runs after a run has used up its attempts."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.accounts.rights import allowed, can
from apps.jobs.models import Job
from apps.jobs.policies import Faults
from apps.spiders.models import Project


def take_repair_job(job: Job, by: User, changes: dict[str, Any], faults: Faults) -> None:
    """A job of the same project that this person may run, and that does not lead back here."""
    if "repair_job" not in changes:
        return
    wanted = changes["repair_job"]
    key = wanted.pk if isinstance(wanted, Job) else wanted
    if key is None or key == job.repair_job_id:
        # Who may not run the chosen one may still save the rest of the form.
        job.repair_job_id = key
        return
    # Two people may each save one half of a circle at the same moment: one after the other in a project.
    Project.objects.select_for_update(no_key=True).get(pk=job.project_id)
    found = _visible(key, by)
    if found is None:
        faults["repair_job"] = [_("There is no such job.")]
    elif found.project_id != job.project_id:
        faults["repair_job"] = [_("A repair job belongs to the same project.")]
    elif not can(by, "run", found):
        faults["repair_job"] = [_("You may not run this job.")]
    elif circle := _circle(job, found):
        seen = dict(allowed(by, "view", Job).filter(pk__in=circle).values_list("pk", "name"))
        path = " → ".join(seen.get(each, job.name if each == job.pk else f"#{each}") for each in circle)
        faults["repair_job"] = [_("Repairs would go round in a circle: %(path)s.") % {"path": path}]
    else:
        job.repair_job = found


def _visible(key: Any, by: User) -> Job | None:
    if isinstance(key, bool) or not isinstance(key, int) or not 0 < key < 2**63:
        return None
    return allowed(by, "view", Job).filter(pk=key).first()


def _circle(job: Job, repair: Job) -> list[int]:
    """Ids along the way back to `job`; empty when the chain of repairs ends."""
    if job._state.adding:
        return []
    path = [job.pk, repair.pk]
    while path[-1] != job.pk:
        following = Job.objects.filter(pk=path[-1]).values_list("repair_job_id", flat=True).first()
        if following is None or following in path[1:]:
            return []
        path.append(following)
    return path
