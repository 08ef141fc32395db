"""Form fields that take what people write: 1h30m, 512 MB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _

from apps.core.durations import format_duration, format_megabytes, parse_duration, parse_megabytes
from apps.core.errors import Invalid


class _SpelledField(forms.IntegerField, ABC):
    """A whole number that is shown and typed in words; a bare number is taken as it is."""

    widget = forms.TextInput

    @abstractmethod
    def parse(self, text: str) -> int:
        """Raises `Invalid`."""

    @abstractmethod
    def spell(self, number: int) -> str:
        """What `parse` takes back."""

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, int) or value in self.empty_values:
            return super().to_python(value)
        try:
            return self.parse(str(value))
        except Invalid as error:
            raise forms.ValidationError(error.message, code=error.code) from error

    def prepare_value(self, value: Any) -> Any:
        return self.spell(value) if isinstance(value, int) else value

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Not the bounds of a number box: this is a text box."""
        return {}


class _SpelledBound:
    """Names the bound of a span in words."""

    def __call__(self, value: int) -> None:
        try:
            super().__call__(value)  # type: ignore[misc]  # of the validator it is mixed into
        except forms.ValidationError as error:
            error.params["span"] = format_duration(error.params["limit_value"])  # type: ignore[index]
            raise


class _AtLeast(_SpelledBound, MinValueValidator):
    message = _("This is at least %(span)s.")


class _AtMost(_SpelledBound, MaxValueValidator):
    message = _("This is at most %(span)s.")


class DurationField(_SpelledField):
    """Seconds."""

    def __init__(self, *, min_value: int | None = None, max_value: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if min_value is not None:
            self.validators.append(_AtLeast(min_value))
        if max_value is not None:
            self.validators.append(_AtMost(max_value))

    def parse(self, text: str) -> int:
        return parse_duration(text)

    def spell(self, number: int) -> str:
        return format_duration(number)


class MegabytesField(_SpelledField):
    def parse(self, text: str) -> int:
        return parse_megabytes(text)

    def spell(self, number: int) -> str:
        return format_megabytes(number)
