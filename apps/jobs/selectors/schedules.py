"""What of schedules a person may see."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.models import Clock, Job, Schedule


def visible_schedules(user: User | AnonymousUser, action: str = "view") -> QuerySet[Schedule]:
    """By number, with their jobs. To change them takes `schedule` on the job."""
    return allowed(user, action, Schedule).select_related("job__project", "job__spider").order_by("pk")


def schedules_of(job: Job) -> QuerySet[Schedule]:
    """Of a job the caller was allowed to see; by number."""
    return Schedule.objects.filter(job=job).order_by("pk")


def clock() -> Clock:
    """The switch of all scheduling; as it is from the start while nobody has touched it."""
    return Clock.objects.filter(pk=1).first() or Clock(pk=1)
