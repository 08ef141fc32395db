"""Which jobs stand before and behind a job."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection


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
