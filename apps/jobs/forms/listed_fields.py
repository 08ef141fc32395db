"""Form fields for several values in one box: exit codes, pauses, NAME=value lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from apps.core.durations import format_duration, parse_duration
from apps.core.errors import Invalid

_COMMA = re.compile(r"[,;\uff0c\u3001\uff1b\n]")  # those of Chinese keyboards too
_BETWEEN_NUMBERS = re.compile(r"[,;\uff0c\u3001\uff1b\s]+")
MOST_PARTS = 300


class CodesField(forms.CharField):
    """`1, 75`: whole numbers."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        parts = [part for part in _BETWEEN_NUMBERS.split(text) if part]
        if wrong := next((part for part in parts if not re.fullmatch(r"-?[0-9]{1,6}", part)), None):
            raise forms.ValidationError(_("“%(text)s” is no exit code.") % {"text": wrong[:20]})
        return [int(part) for part in parts[:MOST_PARTS]]

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else ", ".join(map(str, value))


class PausesField(forms.CharField):
    """`30s, 5m, 1h`: seconds."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        try:
            return [parse_duration(part) for part in _COMMA.split(text)[:MOST_PARTS] if part.strip()]
        except Invalid as error:
            raise forms.ValidationError(error.message, code=error.code) from error

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else ", ".join(map(format_duration, value))


class PairsField(forms.CharField):
    """One NAME=value a line; what a name and a value may be is the service's to say."""

    widget = forms.Textarea

    def __init__(self, *, name: re.Pattern[str] | None = None, trim_values: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, strip=False, **kwargs)
        self.name, self.trim_values = name, trim_values

    def to_python(self, value: Any) -> Any:
        pairs: dict[str, str] = {}
        for number, line in enumerate((super().to_python(value) or "").splitlines(), 1):
            if not line.strip():
                continue
            name, equals, text = line.partition("=")
            name = name.strip()
            if not equals or (self.name and not self.name.fullmatch(name)):
                raise forms.ValidationError(_("Line %(line)d is not NAME=value.") % {"line": number})
            if name in pairs:
                raise forms.ValidationError(_("%(name)s is there twice.") % {"name": name})
            pairs[name] = text.strip() if self.trim_values else text
        return pairs

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name}={text}" for name, text in value.items()) if isinstance(value, Mapping) else value
