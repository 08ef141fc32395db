"""The kinds of boxes that the form of a job is made of."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from apps.core.form_fields import DurationField
from apps.jobs.services.limits import SPANS
from apps.runs.policies import LONGEST_DELAY_SECONDS


def box(**attributes: str) -> dict[str, str]:
    return {"class": "form-control", "autocomplete": "off", **attributes}


def select(label: Any, choices: Any, help_text: Any = "") -> forms.ChoiceField:
    widget = forms.Select(attrs={"class": "form-select"})
    return forms.ChoiceField(label=label, choices=choices, help_text=help_text, widget=widget)


def span(name: str, label: Any, help_text: Any) -> DurationField:
    least, most = SPANS[name]
    widget = forms.TextInput(attrs=box())
    return DurationField(
        label=label, help_text=help_text, required=False, min_value=least, max_value=most, widget=widget
    )


def pause(label: Any, help_text: Any) -> DurationField:
    widget = forms.TextInput(attrs=box())
    return DurationField(label=label, help_text=help_text, min_value=0, max_value=LONGEST_DELAY_SECONDS, widget=widget)


def whole(label: Any, help_text: Any, least: int, most: int) -> forms.IntegerField:
    widget = forms.NumberInput(attrs=box(step="1"))
    return forms.IntegerField(label=label, help_text=help_text, min_value=least, max_value=most, widget=widget)


def number(label: Any, help_text: Any, least: float, most: float) -> forms.FloatField:
    widget = forms.NumberInput(attrs=box(step="any"))
    return forms.FloatField(label=label, help_text=help_text, min_value=least, max_value=most, widget=widget)


class PoolsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # not generic when it runs
    def label_from_instance(self, obj: Any) -> str:
        return _("%(name)s (%(limit)d at once)") % {"name": obj.name, "limit": obj.limit}


class RepairJobField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic when it runs
    """Jobs of the project that the person may run; one that somebody else has chosen stays, without its name."""

    nameless: int | None = None

    def label_from_instance(self, obj: Any) -> str:
        return f"#{obj.pk}" if obj.pk == self.nameless else str(obj)
