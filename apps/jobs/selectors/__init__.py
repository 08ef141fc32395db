"""Reads of jobs: each takes the user, or a job that was taken through `visible_jobs`."""

from apps.jobs.selectors.answers import Answer, answers_for, in_one_text, label_of, why_not_fired
from apps.jobs.selectors.due import fire_at, is_paused, rule_for, slot_after
from apps.jobs.selectors.jobs import (
    JobGlance,
    jobs_at_a_glance,
    last_runs,
    spiders_for_jobs,
    version_of,
    visible_jobs,
)
from apps.jobs.selectors.ledger import LedgerPage, ledger
from apps.jobs.selectors.schedules import clock, schedules_of, visible_schedules

__all__ = [
    "Answer",
    "JobGlance",
    "LedgerPage",
    "answers_for",
    "clock",
    "fire_at",
    "in_one_text",
    "is_paused",
    "jobs_at_a_glance",
    "label_of",
    "last_runs",
    "ledger",
    "rule_for",
    "schedules_of",
    "slot_after",
    "spiders_for_jobs",
    "version_of",
    "visible_jobs",
    "visible_schedules",
    "why_not_fired",
]
