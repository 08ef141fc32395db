"""One run of a job for each row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from apps.core.actors import Actor
from apps.jobs.models import Job
from apps.runs.models import Batch


def start_inputs(
    *,
    job: Job,
    rows: Sequence[Mapping[str, Any]],
    by: Actor,
    now: datetime,
    concurrency: int | None = None,
    name: str = "",
    trigger: str = "inputs",
) -> Batch:
    """Each row is laid over the job's parameters. Nothing is written unless all rows fit; faults are named
    `rows.<row from 1>.<parameter>`."""
    raise NotImplementedError
