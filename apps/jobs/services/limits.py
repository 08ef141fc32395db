"""Amounts, spans and choices of a job, each with its bounds."""

from __future__ import annotations

import math
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from apps.core.durations import format_duration
from apps.jobs.models import Job, NodeLost, Overlap
from apps.jobs.policies import DAY, Faults, checked_span

NUMBERS = ("memory_mb", "cpus", "priority")
# The least and the most seconds of each. Those behind `grace_seconds` may be None: no such limit.
SPANS: dict[str, tuple[int, int]] = {
    "timeout_seconds": (1, 30 * DAY),
    "grace_seconds": (0, 600),
    "start_seconds": (1, DAY),
    "idle_seconds": (1, 30 * DAY),
    "total_seconds": (1, 90 * DAY),
    "queue_seconds": (1, 90 * DAY),
    "pause_seconds": (1, 30 * DAY),
}
NEEDED_SPANS = ("timeout_seconds", "grace_seconds")
CHOICES = {"overlap": Overlap, "on_node_lost": NodeLost}
# Only these overlaps count something.
COUNTING = (Overlap.QUEUE, Overlap.ALLOW)


def take_limits(job: Job, changes: dict[str, Any], *, faults: Faults) -> None:
    for name in NUMBERS:
        if name in changes:
            setattr(job, name, _checked_number(name, changes[name], faults))
    for name, (least, most) in SPANS.items():
        if name in changes:
            value = changes[name]
            if value is not None or name in NEEDED_SPANS:
                value = checked_span(value, name, faults, least=least, most=most)
            setattr(job, name, value)
    for name, choices in CHOICES.items():
        if name in changes:
            if changes[name] in choices.values:
                setattr(job, name, changes[name])
            else:
                faults[name] = [_("Choose one of: %(choices)s.") % {"choices": ", ".join(choices.values)}]
    _take_overlap_max(job, changes, faults)
    _check_total(job, faults)


def _take_overlap_max(job: Job, changes: dict[str, Any], faults: Faults) -> None:
    if "overlap_max" in changes:
        job.overlap_max = changes["overlap_max"]
        if job.overlap_max is not None:
            _checked_number("overlap_max", job.overlap_max, faults)
    elif "overlap" in changes and job.overlap not in COUNTING:
        job.overlap_max = None
    if job.overlap_max is not None and job.overlap not in COUNTING and not faults.keys() & {"overlap", "overlap_max"}:
        faults["overlap_max"] = [_("A number belongs to “queue” and “allow” only.")]


def _check_total(job: Job, faults: Faults) -> None:
    if job.total_seconds is None or faults.keys() & {"total_seconds", "timeout_seconds"}:
        return
    if job.total_seconds < job.timeout_seconds:
        spans = {"total": format_duration(job.total_seconds), "one": format_duration(job.timeout_seconds)}
        sentence = _("The limit over all attempts, %(total)s, is below the time limit of one attempt, %(one)s.")
        faults["total_seconds"] = [sentence % spans]


def _checked_number(name: str, value: Any, faults: Faults) -> Any:
    wanted = (int, float) if name == "cpus" else int
    if isinstance(value, bool) or not isinstance(value, wanted) or not math.isfinite(value):
        faults[name] = [_("Enter a number.")]
        return value
    try:
        Job._meta.get_field(name).run_validators(value)  # type: ignore[union-attr]  # a plain column
    except ValidationError as error:
        faults[name] = list(error.messages)
    return value
