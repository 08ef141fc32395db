"""The section of a page that asks when a job runs, and what its answer would come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils import timezone

from apps.jobs import timing
from apps.jobs.forms.schedule_form import ScheduleForm
from apps.jobs.forms.schedule_values import PREFIX, kept_values
from apps.jobs.models import Job
from apps.jobs.selectors import schedules

NEXT_TIMES = 10
_INSTANT = timedelta(microseconds=1)
# A form without it says nothing of times: a program made it, or somebody who may not change them.
MARK = f"{PREFIX}-kind"


def when_form(request: HttpRequest, *, job: Job | None = None, keep: QueryDict | None = None) -> ScheduleForm | None:
    """For somebody who may make schedules. Of a job with several each has a page of its own. `keep`: show what was
    typed, check nothing."""
    own = list(schedules.schedules_of(job)[:2]) if job else []
    sent = request.method == "POST" and keep is None
    if len(own) > 1 or (sent and MARK not in request.POST):
        return None
    more: dict[str, Any] = {"initial": kept_values(keep)} if keep is not None and MARK in keep else {}
    return ScheduleForm(
        request.POST if sent else None,
        now=timezone.now(),
        zone=timezone.get_current_timezone_name(),
        schedule=own[0] if own else None,
        optional=True,
        **more,
    )


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the boxes come to: `words`, and the next times as the zone of the schedule and the reader show them."""

    words: str = ""
    expression: str = ""
    spread: bool = False
    times: list[timing.Time] = field(default_factory=list)
    ends: bool = False
    warning: str = ""
    other_zone: bool = False


def forecast(form: ScheduleForm, *, now: datetime, average_seconds: float | None) -> Forecast:
    """Of a form that was checked; of one without a rule it is empty."""
    rule = form.rule
    if rule is None:
        return Forecast()
    given = form.cleaned_data
    since = max(now, given["start_at"] - _INSTANT) if given.get("start_at") else now
    times = timing.preview(rule, rule.zone, since, NEXT_TIMES)
    if end := given.get("end_at"):
        times = [each for each in times if each.at <= end]
    return Forecast(
        words=timing.words(rule),
        expression=form.expression,
        spread=bool(given.get("spread") or "~" in form.expression),
        times=times,
        ends=len(times) < NEXT_TIMES,
        warning=timing.warning(rule, average_seconds=average_seconds, after=since),
        other_zone=_shows_otherwise(times),
    )


def _shows_otherwise(times: list[timing.Time]) -> bool:
    """Whether the reader's clock ever shows another time than that of the schedule."""
    return any(timezone.localtime(each.at).replace(tzinfo=None) != each.local.replace(tzinfo=None) for each in times)
