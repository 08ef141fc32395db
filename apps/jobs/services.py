"""Writing jobs and asking for their runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.accounts.models import User
from apps.core.actors import Actor
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.spiders.models import Spider, Version


def create_job(
    *,
    by: User,
    now: datetime,
    spider: Spider,
    name: str,
    parameters: Mapping[str, Any],
    secrets: Mapping[str, str | None] | None = None,
    version: Version | None = None,
    memory_mb: int | None = None,
    cpus: float | None = None,
    timeout_seconds: int | None = None,
    grace_seconds: int | None = None,
    priority: int | None = None,
    env: Mapping[str, str] | None = None,
) -> Job:
    """Limits that are None come from the version, else from the model."""
    raise NotImplementedError


def update_job(*, job: Job, by: User, now: datetime, **changes: Any) -> Job:
    """Change any of what `create_job` takes, except the spider. A secret of None is dropped, unnamed ones stay."""
    raise NotImplementedError


def delete_job(*, job: Job, by: User, now: datetime) -> None:
    raise NotImplementedError


def run_job(
    *,
    job: Job,
    by: Actor,
    now: datetime,
    trigger: str,
    parameters: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str | None] | None = None,
    idempotency_key: str | None = None,
) -> tuple[Run, bool]:
    """A run with the job's parameters, `parameters` laid over them. The flag says whether it is new."""
    raise NotImplementedError
