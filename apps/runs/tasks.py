"""Celery's door to the runs."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.runs import queue, store, sweeps
from apps.runs.agent import bell


@shared_task(name="runs.wake", ignore_result=True)
def wake(**_: object) -> None:
    """Something waits in the database: the agent of this process looks at once."""
    bell.ring()


@shared_task(name="runs.sweep", ignore_result=True)
def sweep(**_: object) -> None:
    now = timezone.now()
    sweeps.give_up_on_silent_nodes(now=now)
    queue.refuse_unplaceable(now=now)
    sweeps.wake_if_work_waits(now=now)


@shared_task(name="runs.keep_partitions", ignore_result=True)
def keep_partitions(**_: object) -> None:
    store.keep_partitions(today=timezone.now().date())
