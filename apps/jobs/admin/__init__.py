"""Jobs and their times in the admin."""

from apps.jobs.admin.batches import BatchAdmin, DependencyAdmin
from apps.jobs.admin.beat import ClockedScheduleAdmin, CrontabScheduleAdmin, IntervalScheduleAdmin, PeriodicTaskAdmin
from apps.jobs.admin.call_hosts import CallHostAdmin
from apps.jobs.admin.hooks import HookAdmin
from apps.jobs.admin.jobs import JobAdmin
from apps.jobs.admin.schedules import ClockAdmin, FiringAdmin, ScheduleAdmin

__all__ = [
    "BatchAdmin",
    "CallHostAdmin",
    "ClockAdmin",
    "ClockedScheduleAdmin",
    "CrontabScheduleAdmin",
    "DependencyAdmin",
    "FiringAdmin",
    "HookAdmin",
    "IntervalScheduleAdmin",
    "JobAdmin",
    "PeriodicTaskAdmin",
    "ScheduleAdmin",
]
