"""Times of jobs: written into the rows of django-celery-beat that people edit, and compiled for firing."""

from apps.jobs.services.schedules.compiling import recompile, recompile_all
from apps.jobs.services.schedules.pausing import pause_schedule, resume_schedule
from apps.jobs.services.schedules.switch import scheduling_off, scheduling_on
from apps.jobs.services.schedules.writing import create_schedule, delete_schedule, set_enabled, update_schedule

__all__ = [
    "create_schedule",
    "delete_schedule",
    "pause_schedule",
    "recompile",
    "recompile_all",
    "resume_schedule",
    "scheduling_off",
    "scheduling_on",
    "set_enabled",
    "update_schedule",
]
