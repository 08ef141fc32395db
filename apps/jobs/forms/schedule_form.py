"""The section of a form that says when a job runs."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from apps.core.errors import Invalid, PanelError
from apps.core.json_text import parse_json
from apps.jobs import timing
from apps.jobs.forms.presets import PRESETS, Kind, Preset
from apps.jobs.forms.schedule_boxes import MORE, NEEDED, RULE, ScheduleBoxes
from apps.jobs.forms.schedule_values import PREFIX, default_values, schedule_values, usual_values
from apps.jobs.forms.zone_fields import in_zone
from apps.jobs.models import Schedule, ScheduleType

LARGEST_PARAMETERS, DEEPEST_PARAMETERS = 64 * 1024, 20
_KINDS = [(str(kind), kind.label) for kind in Kind if kind != Kind.HAND]
# Where the services' names of a fault are not those of the boxes.
_BOXES = {"at": "once_at", "type": "kind", "misfire.policy": "misfire"}


class ScheduleForm(ScheduleBoxes):
    """Without a schedule it starts with “only by hand”, where that may be chosen."""

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        now: datetime,
        zone: str,
        schedule: Schedule | None = None,
        optional: bool = False,
        **kwargs: Any,
    ) -> None:
        """`zone` is that of who fills it in; `optional`: a job need not have a schedule."""
        if "initial" not in kwargs:
            kwargs["initial"] = schedule_values(schedule) if schedule else default_values(now, zone, optional=optional)
        super().__init__(data, prefix=PREFIX, **kwargs)
        self.schedule, self.optional, self.now = schedule, optional, now
        if not optional:
            kinds: Any = self.fields["kind"]
            kinds.choices = _KINDS
        self.rule: timing.Rule | None = None
        for name in self.errors if self.is_bound else ():
            self.mark_wrong(name)

    def mark_wrong(self, name: str) -> None:
        if name in self.fields:
            attributes = self.fields[name].widget.attrs
            attributes["class"] = f"{attributes.get('class', '')} is-invalid"
            attributes["aria-invalid"] = "true"

    # -- what was typed ------------------------------------------------------------------------------------------

    @property
    def chosen(self) -> str:
        """Which kind is marked, also in a form that was not sent yet."""
        return str(self["kind"].value() or "")

    @property
    def by_hand(self) -> bool:
        return bool(self.cleaned_data.get("kind") == Kind.HAND)

    def clean_parameters(self) -> dict[str, Any]:
        text = self.cleaned_data["parameters"].strip()
        if not text:
            return {}
        try:
            value = parse_json(text, max_bytes=LARGEST_PARAMETERS, max_depth=DEEPEST_PARAMETERS)
        except Invalid as error:
            raise forms.ValidationError(error.message, code="json") from error
        if not isinstance(value, dict):
            raise forms.ValidationError(_("Enter a JSON object: {…}."), code="json")
        return value

    def clean(self) -> None:
        """Boxes of other choices are not asked: they may be half filled in."""
        kind = self.cleaned_data.get("kind", "")
        needed = NEEDED.get(kind, ())
        unasked = [*MORE, *RULE[1:]] if kind == Kind.HAND else [*set(RULE[1:]) - {*needed, "spread", "timezone"}]
        for name in unasked:
            self.errors.pop(name, None)
        if kind == Kind.HAND:
            return
        for name in needed:
            if name not in self.errors and self.cleaned_data.get(name) in (None, "", []):
                self.add_error(name, forms.ValidationError(_("This is needed."), code="required"))
        self._place_times(kind)
        start, end = self.cleaned_data["start_at"], self.cleaned_data["end_at"]
        if start and end and end <= start:
            self.add_error("end_at", _("The end lies before the start."))
        if not any(name in self.errors for name in RULE):
            self._take_rule()

    def _place_times(self, kind: str) -> None:
        """Times on the wall become instants, once it is known where."""
        zone = self.cleaned_data.get("timezone")
        for name in ("start_at", "end_at", "once_at"):
            wall, instant = self.cleaned_data.get(name), None
            if zone and (name != "once_at" or kind == Kind.ONCE):
                try:
                    instant = in_zone(wall, zone)
                except forms.ValidationError as error:
                    self.add_error(name, error)
            self.cleaned_data[name] = instant

    def _take_rule(self) -> None:
        """`~` stands for the minute that this schedule has, or that a new one may get."""
        given, own, kind = self.cleaned_data, self.schedule, self.cleaned_data["kind"]
        every = given["every"] if kind == Kind.INTERVAL else None
        anchor = own.anchor_at if own and own.every_seconds == every else None
        try:
            self.rule = timing.rule_of(
                type=self.type,
                expression=timing.check_cron(self.expression, seed=own.pk if own else 0) if self.expression else "",
                every_seconds=every,
                anchor_at=anchor or given["start_at"] or self.now if every else None,
                once_at=given["once_at"],
                timezone=given["timezone"],
            )
        except timing.BadRule as error:
            self.take(error)

    # -- for the services ----------------------------------------------------------------------------------------

    @property
    def type(self) -> str:
        kinds = {Kind.INTERVAL: ScheduleType.INTERVAL, Kind.ONCE: ScheduleType.ONCE}
        return str(kinds.get(self.cleaned_data["kind"], ScheduleType.CRON))

    @property
    def expression(self) -> str:
        """As typed, or what the boxes of a preset stand for; empty for what is no cron expression."""
        given, kind = self.cleaned_data, self.cleaned_data["kind"]
        if kind == Kind.CRON:
            return str(given["cron"])
        if kind not in PRESETS:
            return ""
        preset = Preset(
            Kind(kind),
            minute=given.get("minute") or 0,
            at=given.get("time") or time(),
            weekdays=tuple(map(int, given.get("weekdays") or ())),
            monthday=int(given.get("monthday") or 1),
            spread=given["spread"],
        )
        return preset.expression

    @property
    def changes(self) -> dict[str, Any]:
        """Keywords for `services.schedules`, of a form that says that there is a schedule."""
        given = self.cleaned_data
        misfire = {"policy": given["misfire"], "cap": given["misfire_cap"]}
        misfire |= {"grace": given["misfire_grace"], "spacing": given["misfire_spacing"]}
        plain = ("timezone", "name", "start_at", "end_at", "jitter", "parameters")
        return {
            "type": self.type,
            "cron": self.expression,
            "every": given["every"] if self.type == ScheduleType.INTERVAL else None,
            "at": given["once_at"],
            "misfire": misfire,
            **{name: given[name] for name in plain},
        }

    @property
    def has_news(self) -> bool:
        """Whether saving would change the schedule: boxes of other choices, and line ends of a text, do not count."""
        asked = {"kind", "timezone", "spread", *NEEDED[self.cleaned_data["kind"]], *MORE} - {"parameters"}
        if self.schedule is None or asked & {*self.changed_data}:
            return True
        return bool(self.cleaned_data["parameters"] != self.schedule.parameters)

    @property
    def seen_at(self) -> datetime | None:
        """When the schedule had been changed last, for who opened the form."""
        try:
            return parse_datetime(self.cleaned_data["seen"])
        except ValueError:
            return None

    def take(self, error: PanelError) -> None:
        """Put the sentences of a refusal at their boxes."""
        if not error.fields:
            self.add_error(None, error.message)
        for field, sentences in error.fields.items():
            name = self._box_of(field)
            path = field.removeprefix("parameters.") if field.startswith("parameters.") else ""
            for sentence in sentences:
                self.add_error(name, f"{path}: {sentence}" if path else sentence)
            if name:
                self.mark_wrong(name)

    def _box_of(self, field: str) -> str | None:
        kind = self.cleaned_data.get("kind", "")
        if field in ("expression", "cron"):
            # Of what presets say only the day of a month can be wrong by itself.
            boxes = {str(Kind.CRON): "cron", str(Kind.HOURLY): "minute", str(Kind.MONTHLY): "monthday"}
            return boxes.get(kind, "time")
        if field == "every_seconds":
            return "every"
        name = _BOXES.get(field, field.replace("misfire.", "misfire_").split(".")[0])
        return name if name in self.fields else None

    # -- for the page --------------------------------------------------------------------------------------------

    @property
    def wrong(self) -> bool:
        return self.is_bound and bool(self.errors)

    @property
    def wrong_more(self) -> bool:
        """Whether what is folded away has a fault."""
        return self.is_bound and any(name in self.errors for name in MORE)

    @property
    def says_more(self) -> bool:
        """Whether something that is folded away is not as usual: it is shown open then."""
        return any(self.initial.get(name) not in (value, None, "") for name, value in usual_values().items())

    @property
    def unfinished(self) -> bool:
        """Nothing is wrong but what was not filled in yet."""
        return not any(sentences for _id, sentences in self.live_faults)

    @property
    def live_faults(self) -> list[tuple[str, list[str]]]:
        """By the id of each box, those to be told while somebody types: an empty box is no fault yet."""
        found = self.errors.as_data()
        told = {
            name: [str(text) for error in errors if error.code != "required" for text in error.messages]
            for name, errors in found.items()
        }
        names = [name for name in (*RULE, *MORE) if name not in ("spread", "name", "parameters")]
        return [(self[name].auto_id, told.get(name, [])) for name in names]
