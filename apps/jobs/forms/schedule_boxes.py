"""The boxes of the section that says when a job runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext_lazy

from apps.core.form_fields import DurationField
from apps.jobs.forms.boxes import box, select, whole
from apps.jobs.forms.presets import Kind
from apps.jobs.forms.zone_fields import WallClockField, ZoneField
from apps.jobs.models import Misfire

MOST_SECONDS = 10 * 366 * 86400
# Boxes of the rule itself, and all that is folded away.
RULE = ("kind", "minute", "time", "spread", "weekdays", "monthday", "every", "once_at", "cron", "timezone")
MORE = (
    "name", "start_at", "end_at", "jitter", "misfire", "misfire_grace", "misfire_cap", "misfire_spacing", "parameters",
)  # fmt: skip
# What each choice needs; a box of another choice may hold anything.
NEEDED: Mapping[str, tuple[str, ...]] = {
    Kind.HAND: (),
    Kind.HOURLY: ("minute",),
    Kind.DAILY: ("time",),
    Kind.WORKDAYS: ("time",),
    Kind.WEEKLY: ("time", "weekdays"),
    Kind.MONTHLY: ("time", "monthday"),
    Kind.INTERVAL: ("every",),
    Kind.ONCE: ("once_at",),
    Kind.CRON: ("cron",),
}
# Cron counts from Sunday, Django from Monday.
WEEKDAY_CHOICES = [(str((day + 1) % 7), name) for day, name in WEEKDAYS.items()]
MONTHDAY_CHOICES = [(str(day), str(day)) for day in range(1, 32)]


def _span(label: Any, help_text: Any, least: int, *, required: bool = True) -> Any:
    return DurationField(
        label=label,
        help_text=help_text,
        required=required,
        min_value=least,
        max_value=MOST_SECONDS,
        widget=forms.TextInput(attrs=box()),
    )


def _wall_clock(label: Any, help_text: Any = "") -> WallClockField:
    return WallClockField(
        label=label, help_text=help_text, required=False, widget=forms.DateTimeInput(attrs=box(step="any"))
    )


class ScheduleBoxes(forms.Form):
    seen = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    kind = forms.ChoiceField(label=gettext_lazy("When"), choices=Kind.choices, widget=forms.RadioSelect)
    minute = forms.IntegerField(
        label=gettext_lazy("Minute of the hour"),
        required=False,
        min_value=0,
        max_value=59,
        widget=forms.NumberInput(attrs=box(step="1")),
    )
    time = forms.TimeField(
        label=gettext_lazy("At"), required=False, widget=forms.TimeInput(attrs=box(type="time"), format="%H:%M")
    )
    spread = forms.BooleanField(
        label=gettext_lazy("At any minute of that hour"),
        required=False,
        help_text=gettext_lazy("The panel chooses one and keeps to it, so that not all jobs start at once."),
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )
    weekdays = forms.MultipleChoiceField(
        label=gettext_lazy("Days of the week"),
        choices=WEEKDAY_CHOICES,
        required=False,
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )
    monthday = forms.ChoiceField(
        label=gettext_lazy("Day of the month"),
        choices=MONTHDAY_CHOICES,
        required=False,
        help_text=gettext_lazy("A month without this day is left out."),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    every = _span(
        gettext_lazy("Every"),
        gettext_lazy("Such as 90s, 15 min or 2 days, whatever the clock shows."),
        1,
        required=False,
    )
    once_at = _wall_clock(gettext_lazy("Date and time"))
    cron = forms.CharField(
        label=gettext_lazy("Cron expression"),
        required=False,
        max_length=500,
        help_text=gettext_lazy(
            "Minute, hour, day of the month, month, day of the week. Also @daily and the like; ~ as minute lets the"
            " panel choose one."
        ),
        widget=forms.TextInput(attrs=box(spellcheck="false") | {"class": "form-control claw-mono"}),
    )
    timezone = ZoneField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        widget=forms.TextInput(attrs=box(list="time-zones", spellcheck="false")),
    )
    name = forms.CharField(
        label=gettext_lazy("Name of the schedule"),
        required=False,
        max_length=100,
        help_text=gettext_lazy("Tells it from other schedules of the job."),
        widget=forms.TextInput(attrs=box()),
    )
    start_at = _wall_clock(gettext_lazy("Not before"))
    end_at = _wall_clock(gettext_lazy("Not after"))
    jitter = _span(
        gettext_lazy("Jitter"), gettext_lazy("Starts up to so much later, each time differently. 0s: none."), 0
    )
    misfire = select(
        gettext_lazy("When a time was missed"),
        Misfire.choices,
        gettext_lazy("Because the scheduler or the whole panel did not run then."),
    )
    misfire_grace = _span(
        gettext_lazy("Too late after"), gettext_lazy("A time that is longer ago is only noted as missed."), 0
    )
    misfire_cap = whole(gettext_lazy("Made up for at most"), gettext_lazy("The newest of them, oldest first."), 1, 1000)
    misfire_spacing = _span(gettext_lazy("Pause between them"), gettext_lazy("0s: all at once."), 0)
    parameters = forms.CharField(
        label=gettext_lazy("Own parameters (JSON)"),
        required=False,
        help_text=gettext_lazy('Laid over those of the job, such as {"pages": 3}.'),
        widget=forms.Textarea(attrs=box(rows="3", spellcheck="false") | {"class": "form-control claw-mono"}),
    )
