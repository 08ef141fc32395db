"""Celery's door to the jobs."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.jobs import services
from apps.jobs.services import batches, rendering


@shared_task(name="jobs.start_repairs", ignore_result=True)
def start_repairs(**_: object) -> None:
    services.start_repairs(now=timezone.now())


@shared_task(name="jobs.settle_batches", ignore_result=True)
def settle_batches(*, batch_id: int | None = None, **_: object) -> None:
    """One batch, or all that are open."""
    if batch_id is None:
        batches.settle_open(now=timezone.now())
    else:
        batches.settle(batch_id=batch_id, now=timezone.now())


@shared_task(name="jobs.prepare", ignore_result=True)
def prepare(*, run_id: int | None = None, **_: object) -> None:
    """One run, or hints for all that wait for it."""
    if run_id is None:
        rendering.prepare_waiting(now=timezone.now())
    else:
        rendering.prepare(run_id=run_id, now=timezone.now())
