"""What to run, how, and when."""

from apps.jobs.models.doors import CallHost, Hook
from apps.jobs.models.graph import Condition, Dependency, Join
from apps.jobs.models.job import Job, JobGroupObjectPermission, JobUserObjectPermission, NodeLost, Overlap
from apps.jobs.models.schedule import Clock, Firing, Misfire, Outcome, Schedule, ScheduleType

__all__ = [
    "CallHost",
    "Clock",
    "Condition",
    "Dependency",
    "Firing",
    "Hook",
    "Job",
    "JobGroupObjectPermission",
    "JobUserObjectPermission",
    "Join",
    "Misfire",
    "NodeLost",
    "Outcome",
    "Overlap",
    "Schedule",
    "ScheduleType",
]
