"""Celery's door to the runs."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import connection
from django.utils import timezone

from apps.runs import queue, store, sweeps
from apps.runs.agent import bell

logger = logging.getLogger(__name__)


@shared_task(name="runs.wake", ignore_result=True)
def wake(**_: object) -> None:
    """Something waits in the database: the agent of this process looks at once."""
    bell.ring()


# The last may wait for a heartbeat: behind it stands nothing that is due.
_SWEEPS = (
    sweeps.free_what_the_frozen_hold,
    sweeps.requeue_due,
    sweeps.expire_queue,
    sweeps.end_out_of_time,
    queue.refuse_unplaceable,
    sweeps.stop_overdue,
    sweeps.stop_drained,
    sweeps.resume_long_paused,
    sweeps.wake_if_work_waits,
    sweeps.give_up_on_silent_nodes,
)


@shared_task(name="runs.sweep", ignore_result=True)
def sweep(**_: object) -> None:
    """One that fails must not keep the others from what is due."""
    for due in _SWEEPS:
        try:
            due(now=timezone.now())
        except Exception:
            logger.exception("sweep %s failed", due.__name__)
            connection.close()


@shared_task(name="runs.keep_partitions", ignore_result=True)
def keep_partitions(**_: object) -> None:
    store.keep_partitions(today=timezone.now().date())
