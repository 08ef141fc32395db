"""What jobs before a job have put out."""

from __future__ import annotations

from typing import Any

from django.db import connection

from apps.runs.models import Run
from apps.runs.selectors.batches import upstream_runs
from apps.runs.states import State

_BEFORE = """
WITH RECURSIVE before (id) AS (
    SELECT upstream_id FROM jobs_dependency WHERE job_id = %s
    UNION SELECT d.upstream_id FROM jobs_dependency d JOIN before b ON d.job_id = b.id
)
SELECT j.id, j.name FROM jobs_job j JOIN before b ON b.id = j.id
"""


def jobs_before(job_id: int | None) -> dict[int, str]:
    """Names by id of all jobs that the job runs after, by any number of steps."""
    if job_id is None:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_BEFORE, [job_id])
        return dict(cursor.fetchall())


def outputs_before(run: Run) -> dict[str, dict[str, Any]]:
    """The outputs of the runs before this one in its batch, by job name and by job id; of a job that has none there,
    that of its newest success."""
    found: dict[str, dict[str, Any]] = {}
    before = jobs_before(run.job_id)
    inside = upstream_runs(run)
    for pk, name in before.items():
        upstream = inside.get(str(pk)) or _newest_success(pk)
        if upstream is not None:
            found[str(pk)] = found[name] = _output(upstream)
    for key, upstream in inside.items():
        # A dependency may be gone since the batch began: it counts still.
        found.setdefault(key, _output(upstream))
        found.setdefault(upstream.job_name, _output(upstream))
    return found


def _newest_success(job_id: int) -> Run | None:
    return Run.objects.filter(job_id=job_id, state=State.SUCCEEDED).order_by("-pk").first()


def _output(run: Run) -> dict[str, Any]:
    return run.output if isinstance(run.output, dict) else {}
