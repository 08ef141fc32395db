"""The locks under which a schedule is changed.

First the job, where it is locked at all, then the periodic task, then the schedule: an edit in the admin locks the task
and comes to the schedule through the trigger. Firing locks schedules before their jobs, but waits for neither.
"""

from __future__ import annotations

from django.utils.translation import gettext as _
from django_celery_beat.models import PeriodicTask

from apps.core.errors import NotFound
from apps.jobs.models import Job, Schedule


def locked_schedule(schedule: Schedule) -> Schedule:
    """The schedule as it is now, with its job."""
    lock_tasks([schedule.task_id])
    rows = Schedule.objects.select_for_update(of=("self",), no_key=True)
    whole = rows.select_related("job__project", "job__spider__current_version", "job__version")
    found = whole.filter(pk=schedule.pk).first()
    if found is None:
        raise NotFound(_("This schedule has been deleted."))
    return found


def lock_schedules_of(job: Job) -> None:
    """All of them, to be deleted; under the lock of the job no new one comes."""
    lock_tasks(list(Schedule.objects.filter(job=job).values_list("task_id", flat=True)))
    list(Schedule.objects.select_for_update().filter(job=job).order_by("pk").values_list("pk"))


def lock_tasks(task_ids: list[int]) -> None:
    list(PeriodicTask.objects.select_for_update().filter(pk__in=task_ids).order_by("pk").values_list("pk"))
