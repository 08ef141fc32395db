"""The rules of time: cron, intervals, single dates, and words for them. Pure: nothing here reads the database."""

from apps.jobs.timing.cron_text import check_cron, joined, spread
from apps.jobs.timing.faults import BadRule
from apps.jobs.timing.previews import Time, preview, shortest_gap, warning
from apps.jobs.timing.rules import Rule, rule_of
from apps.jobs.timing.words import words
from apps.jobs.timing.zones import local_day, zone_of

__all__ = [
    "BadRule",
    "Rule",
    "Time",
    "check_cron",
    "joined",
    "local_day",
    "preview",
    "rule_of",
    "shortest_gap",
    "spread",
    "warning",
    "words",
    "zone_of",
]
