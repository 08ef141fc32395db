"""Which jobs follow which, and that none of them leads back to itself."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.core.actors import person
from apps.core.changes import note_change
from apps.core.errors import Invalid
from apps.jobs.models import Condition, Dependency, Job, Join
from apps.jobs.policies import Faults
from apps.jobs.services.locking import locked_job
from apps.spiders.models import Project

MOST_UPSTREAMS = 50
# A job and those that run after it, be it as dependents or as its repair.
Followers = Mapping[int, set[int]]


@transaction.atomic
def set_dependencies(*, job: Job, upstreams: Sequence[tuple[Any, Any]], join: str, by: User, now: datetime) -> None:
    """The job follows exactly these: pairs of the id of the upstream job and the condition.

    Faults are named `upstreams.<place from 0>`, `upstreams` or `join`. Batches under way go on as they began.
    """
    own = locked_job(job)
    lock_graph(project_id=own.project_id)
    faults: Faults = {}
    wanted = _checked(own, upstreams, by, faults)
    if join not in Join.values:
        faults["join"] = [_("Choose one of: %(choices)s.") % {"choices": ", ".join(Join.values)}]
    if faults:
        raise Invalid(_("Some of this cannot be taken."), fields=faults)
    _write(own, wanted, join, by, now)
    job.join = join


def lock_graph(*, project_id: int) -> None:
    """Two people may each save one half of a circle at the same moment: one after the other in a project."""
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


# -- checks ---------------------------------------------------------------------------------------------------------


def _checked(job: Job, upstreams: Sequence[tuple[Any, Any]], by: User, faults: Faults) -> dict[int, str]:
    """Conditions by the ids of the upstream jobs; each fault at the place of its row."""
    if len(upstreams) > MOST_UPSTREAMS:
        faults["upstreams"] = [_("A job follows at most %(most)d others.") % {"most": MOST_UPSTREAMS}]
        return {}
    keys = [key for key, _condition in upstreams if _is_id(key)]
    seen = {each.pk: each for each in allowed(by, "view", Job).filter(pk__in=keys)}
    # Who may not see one that was chosen before may still save the rest.
    before = Dependency.objects.filter(job=job).values_list("upstream_id", "upstream__project_id")
    projects = {**dict(before), **{pk: each.project_id for pk, each in seen.items()}}
    graph = followers(project_id=job.project_id)
    found: dict[int, str] = {}
    for place, (key, condition) in enumerate(upstreams):
        said = _fault(job, key, condition, projects, found) or _said_of_circle(job, key, graph, by)
        if said:
            faults[f"upstreams.{place}"] = [said]
        else:
            found[key] = condition
    return found


def _is_id(key: Any) -> bool:
    return isinstance(key, int) and not isinstance(key, bool) and 0 < key < 2**63


def _fault(job: Job, key: Any, condition: Any, projects: Mapping[int, int], found: Mapping[int, str]) -> str:
    if _is_id(key) and key == job.pk:
        return _("A job cannot follow itself.")
    if not _is_id(key) or key not in projects:
        return _("There is no such job.")
    if projects[key] != job.project_id:
        return _("Jobs that follow each other belong to the same project.")
    if key in found:
        return _("This job is chosen twice.")
    if condition not in Condition.values:
        return _("Choose one of: %(choices)s.") % {"choices": ", ".join(Condition.values)}
    return ""


def _said_of_circle(job: Job, upstream: int, graph: Followers, by: User) -> str:
    """Edges into the job do not count on the way from it: they are the ones that are replaced."""
    way = way_between(start=job.pk, goal=upstream, graph=graph)
    if not way:
        return ""
    return _("The jobs would go round in a circle: %(path)s.") % {"path": path_text([*way, job.pk], by, known=[job])}


def followers(*, project_id: int, without_repair_of: int | None = None) -> Followers:
    """The graph of a project, dependencies and repairs together."""
    found: dict[int, set[int]] = defaultdict(set)
    edges = Dependency.objects.filter(job__project=project_id).values_list("upstream_id", "job_id")
    repairs = Job.objects.filter(project=project_id, repair_job__isnull=False).exclude(pk=without_repair_of or 0)
    for before, after in [*edges, *repairs.values_list("pk", "repair_job_id")]:
        if after is not None:
            found[before].add(after)
    return found


def way_between(*, start: int, goal: int, graph: Followers) -> list[int]:
    """The shortest way along the graph, both ends named; empty when none leads there."""
    came_from: dict[int, int] = {start: start}
    to_look = deque([start])
    while to_look and goal not in came_from:
        here = to_look.popleft()
        for following in sorted(graph.get(here, ())):
            if following not in came_from:
                came_from[following] = here
                to_look.append(following)
    if goal not in came_from:
        return []
    way = [goal]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def path_text(ids: Sequence[int], by: User, *, known: Iterable[Job]) -> str:
    """ "fetch → clean → fetch"; a job that this person may not see goes by its number."""
    seen = dict(allowed(by, "view", Job).filter(pk__in=ids).values_list("pk", "name"))
    seen |= {job.pk: job.name for job in known}
    return " → ".join(seen.get(each, f"#{each}") for each in ids)


# -- writing --------------------------------------------------------------------------------------------------------


def _write(job: Job, wanted: Mapping[int, str], join: str, by: User, now: datetime) -> None:
    before = dict(Dependency.objects.filter(job=job).values_list("upstream_id", "condition"))
    if before == wanted and job.join == join:
        return
    Dependency.objects.filter(job=job).exclude(upstream_id__in=wanted).delete()
    for upstream, condition in wanted.items():
        if upstream not in before:
            Dependency.objects.create(job=job, upstream_id=upstream, condition=condition)
        elif before[upstream] != condition:
            Dependency.objects.filter(job=job, upstream_id=upstream).update(condition=condition)
    Job.objects.filter(pk=job.pk).update(join=join, updated_at=now)
    told = ", ".join(f"{upstream} {condition}" for upstream, condition in sorted(wanted.items()))
    note_change(job, person(by), f"dependencies: {told or '-'}; {join}")
