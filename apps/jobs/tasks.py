"""Celery's door to the jobs."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.jobs import services


@shared_task(name="jobs.start_repairs", ignore_result=True)
def start_repairs(**_: object) -> None:
    services.start_repairs(now=timezone.now())
