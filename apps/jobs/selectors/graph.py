"""Which jobs stand before and behind a job."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db import connection

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.models import Condition, Dependency, Job


@dataclass(frozen=True, slots=True)
class Follows:
    """Job `job` runs after job `upstream`."""

    upstream: int
    job: int
    condition: str


_BEHIND = """
WITH RECURSIVE behind (id) AS (
    SELECT job_id FROM jobs_dependency WHERE upstream_id = ANY(%s)
    UNION SELECT d.job_id FROM jobs_dependency d JOIN behind b ON d.upstream_id = b.id
)
SELECT d.upstream_id, d.job_id, d.condition FROM jobs_dependency d JOIN behind b ON d.job_id = b.id ORDER BY d.id
"""


def edges_behind(job_ids: Collection[int]) -> list[Follows]:
    """Every edge that leads to a job which follows one of these, by any number of steps; also from jobs elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute(_BEHIND, [list(job_ids)])
        return [Follows(*row) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A job on the other end of an edge; one that may not be seen goes by its number."""

    id: int
    name: str
    condition: str
    visible: bool

    @property
    def condition_words(self) -> str:
        return str(Condition(self.condition).label)


@dataclass(frozen=True, slots=True)
class Neighbours:
    upstreams: list[Neighbour]
    downstreams: list[Neighbour]


def neighbours(job: Job, user: User | AnonymousUser) -> Neighbours:
    """What the job follows, and what follows it; each by name."""
    before = list(Dependency.objects.filter(job=job).values_list("upstream_id", "condition"))
    behind = list(Dependency.objects.filter(upstream=job).values_list("job_id", "condition"))
    ids = [pk for pk, _condition in (*before, *behind)]
    names = dict(allowed(user, "view", Job).filter(pk__in=ids).values_list("pk", "name"))
    found = ([_neighbour(pk, how, names) for pk, how in edges] for edges in (before, behind))
    return Neighbours(*(sorted(each, key=lambda one: (not one.visible, one.name, one.id)) for each in found))


def _neighbour(pk: int, condition: str, names: Mapping[int, str]) -> Neighbour:
    return Neighbour(pk, names.get(pk, f"#{pk}"), condition, pk in names)
