"""What a person says of a webhook."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.core.errors import PanelError
from apps.jobs.models import Hook


class HookForm(forms.Form):
    """Its rules are those of the service."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
        help_text=_("Who calls: “build server”, “shop”. It is shown in the story of each run."),
    )
    kind = forms.ChoiceField(
        label=_("Proof"),
        choices=Hook.Kind.choices,
        initial=Hook.Kind.HMAC,
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text=_("A signed body is safe even when the address becomes known, for example by the log of a proxy."),
    )
    per_minute = forms.IntegerField(
        label=_("Calls a minute"),
        min_value=1,
        max_value=6000,
        initial=60,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
        help_text=_("More are refused until the minute is over."),
    )
    mapping = forms.CharField(
        label=_("Where parameters stand in the body"),
        required=False,
        widget=forms.Textarea(
            attrs={
                "class": "form-control claw-mono",
                "rows": 4,
                "spellcheck": "false",
                "placeholder": "max_pages = event.pages\nsite = event.hosts.0",
            }
        ),
        help_text=_('One “parameter = path” a line. Empty: a body such as {"max_pages": 3} has them by their names.'),
    )

    def clean_mapping(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["mapping"].splitlines(), 1):
            if not line.strip():
                continue
            name, equals, path = (part.strip() for part in line.partition("="))
            if not equals:
                raise forms.ValidationError(gettext("Line %(line)d is not “parameter = path”.") % {"line": number})
            if name in found:
                raise forms.ValidationError(gettext("%(name)s is there twice.") % {"name": name})
            found[name] = path
        return found

    @property
    def values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("name", "kind", "per_minute", "mapping")}

    def take(self, error: PanelError) -> None:
        """Put the sentences of a refusal at their fields."""
        if not error.fields:
            self.add_error(None, error.message)
        for place, sentences in error.fields.items():
            name = place.partition(".")[0]
            for sentence in sentences:
                self.add_error(name if name in self.fields else None, sentence)
