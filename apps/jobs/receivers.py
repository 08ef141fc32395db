"""What jobs learn of runs at once; the sweeps would find out by themselves."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from apps.core.background import enqueue
from apps.runs.models import Run
from apps.runs.signals import run_changed
from apps.runs.states import TERMINAL


@receiver(run_changed, dispatch_uid="jobs.settle_batches")
def settle_its_batch(run_id: int, to: str, **_: Any) -> None:
    """The end of a run may be the turn of others."""
    if to not in TERMINAL:
        return
    batch_id = Run.objects.filter(pk=run_id, batch__finished_at=None).values_list("batch_id", flat=True).first()
    if batch_id is not None:
        enqueue("jobs.settle_batches", batch_id=batch_id)
