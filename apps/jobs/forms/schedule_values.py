"""What the boxes of a schedule hold: at first, of one that is there, and as typed so far."""

from __future__ import annotations

import json
from datetime import datetime, time
from typing import Any

from django import forms
from django.http import QueryDict

from apps.jobs.forms.presets import Kind, preset_of
from apps.jobs.forms.schedule_boxes import ScheduleBoxes
from apps.jobs.forms.zone_fields import next_full_hour, on_the_wall
from apps.jobs.models import Schedule, ScheduleType

PREFIX = "when"
# Of the folded boxes those that the model has by another name.
COLUMNS = {
    "name": "name",
    "jitter": "jitter_seconds",
    "misfire": "misfire",
    "misfire_grace": "misfire_grace_seconds",
    "misfire_cap": "misfire_cap",
    "misfire_spacing": "misfire_spacing_seconds",
}


def usual_values() -> dict[str, Any]:
    """What the folded boxes hold where nobody has changed them."""
    usual = Schedule()
    return {**_columns(usual), "parameters": "", "start_at": None, "end_at": None}


def _columns(schedule: Schedule) -> dict[str, Any]:
    return {box: getattr(schedule, column) for box, column in COLUMNS.items()}


def default_values(now: datetime, zone: str, *, optional: bool) -> dict[str, Any]:
    """A new schedule: something that makes sense for each choice."""
    return {
        "kind": str(Kind.HAND if optional else Kind.DAILY),
        "minute": 0,
        "time": time(9, 0),
        "weekdays": ["1"],
        "monthday": "1",
        "every": 3600,
        "once_at": next_full_hour(now, zone),
        "cron": "0 9 * * *",
        "timezone": zone,
        **usual_values(),
    }


def schedule_values(schedule: Schedule) -> dict[str, Any]:
    """What the boxes hold for a schedule that is there."""
    zone = schedule.timezone
    values = default_values(schedule.created_at, zone, optional=False)
    typed = schedule.typed or schedule.expression
    preset = preset_of(typed) if schedule.type == ScheduleType.CRON else None
    if preset:
        values |= preset.boxes()
    else:
        kinds = {ScheduleType.CRON: Kind.CRON, ScheduleType.INTERVAL: Kind.INTERVAL, ScheduleType.ONCE: Kind.ONCE}
        values["kind"] = str(kinds[ScheduleType(schedule.type)])
    if typed:
        values["cron"] = typed
    if schedule.every_seconds:
        values["every"] = schedule.every_seconds
    if schedule.once_at:
        values["once_at"] = on_the_wall(schedule.once_at, zone)
    values |= {name: on_the_wall(getattr(schedule, name), zone) for name in ("start_at", "end_at")}
    own = json.dumps(schedule.parameters, ensure_ascii=False, indent=2) if schedule.parameters else ""
    return {**values, **_columns(schedule), "parameters": own, "seen": schedule.updated_at.isoformat()}


def kept_values(data: QueryDict) -> dict[str, Any]:
    """What was typed so far, to show it again: nothing is checked."""
    fields: dict[str, forms.Field] = ScheduleBoxes.base_fields
    return {name: field.widget.value_from_datadict(data, {}, f"{PREFIX}-{name}") for name, field in fields.items()}
