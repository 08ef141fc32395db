"""A job together with its schedule, as one form asks for them: both are saved or neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.actors import person
from apps.core.errors import Conflict, PanelError
from apps.jobs.models import Job, Schedule
from apps.jobs.services.schedules import create_schedule, delete_schedule, update_schedule
from apps.jobs.services.writing import create_job, update_job
from apps.spiders.models import Spider

# Faults of the schedule are told under this name: both parts have a name, parameters …
WHEN = "when."


class ScheduleGone(Conflict):
    code = "schedule_gone"


@transaction.atomic
def save_job_with_schedule(
    *,
    by: User,
    now: datetime,
    changes: Mapping[str, Any],
    spider: Spider | None = None,
    job: Job | None = None,
    schedule: Schedule | None = None,
    when: Mapping[str, Any] | None = None,
    seen: datetime | None = None,
) -> Job:
    """Change `job`, or make one of `spider`; see `create_job`.

    `when` is what `create_schedule` takes: for `schedule`, or for a new one. A schedule without `when` is deleted.
    `seen` without a schedule: there was one when the person looked.
    """
    if job is not None:
        saved = update_job(job=job, by=by, now=now, **changes)
    elif spider is not None:
        saved = create_job(by=by, now=now, spider=spider, **changes)
    else:
        raise TypeError("a job to change or a spider for a new one is needed")
    with _told_apart():
        if when is None:
            if schedule is not None:
                delete_schedule(schedule=schedule, by=person(by), now=now)
        elif schedule is None and seen is not None:
            raise ScheduleGone(_("Somebody has deleted the schedule meanwhile: open this page again."))
        elif schedule is None:
            create_schedule(job=saved, by=person(by), now=now, **when)
        else:
            update_schedule(schedule=schedule, by=person(by), now=now, seen=seen, **when)
    return saved


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except PanelError as error:
        error.fields = {f"{WHEN}{name}": sentences for name, sentences in error.fields.items()}
        raise
