"""What to run, how, and when."""

from apps.jobs.models.doors import CallHost, Hook
from apps.jobs.models.graph import Condition, Dependency, Join
from apps.jobs.models.job import Job, JobGroupObjectPermission, JobUserObjectPermission, NodeLost, Overlap
from apps.jobs.models.schedule import FIRE_TASK, Clock, Firing, Misfire, Outcome, Schedule, ScheduleType

__all__ = [
    "FIRE_TASK",
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
