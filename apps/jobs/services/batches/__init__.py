"""Batches of jobs that follow each other: their start, the turn of each run, their end."""

from apps.jobs.services.batches.again import NothingToRepeat, again_from_failed, failed_in
from apps.jobs.services.batches.settling import settle, settle_open
from apps.jobs.services.batches.starting import jobs_with_followers, start_batch
from apps.jobs.services.batches.stopping import BatchFinished, stop_batch

__all__ = [
    "BatchFinished",
    "NothingToRepeat",
    "again_from_failed",
    "failed_in",
    "jobs_with_followers",
    "settle",
    "settle_open",
    "start_batch",
    "stop_batch",
]
