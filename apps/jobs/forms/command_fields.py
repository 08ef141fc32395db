"""Form fields for the arguments and calls of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from apps.core.json_text import BadJson, parse_json

MAX_BYTES = 512 * 1024


class ArgumentsField(forms.CharField):
    """One argument a line. One that a line cannot hold is written in quotes, as in JSON."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, strip=False, **kwargs)

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").replace("\r\n", "\n").replace("\r", "\n")
        return [_argument(line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(_line, value)) if isinstance(value, list | tuple) else value


def _argument(line: str, number: int) -> str:
    if not line.startswith('"'):
        return line
    try:
        text = parse_json(line.rstrip(), max_bytes=MAX_BYTES, max_depth=1)
    except BadJson as error:
        raise forms.ValidationError(
            _("Line %(line)d begins with a quotation mark, but is no text in quotes.") % {"line": number}
        ) from error
    return str(text)


def _line(argument: str) -> str:
    fits = argument.strip() and not argument.startswith('"') and "\n" not in argument and "\r" not in argument
    return argument if fits else json.dumps(argument, ensure_ascii=False)


class CallsField(forms.CharField):
    """Calls as JSON; what they may be is the service's to say."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, strip=True, **kwargs)

    def to_python(self, value: Any) -> Any:
        try:
            calls = parse_json(super().to_python(value) or "{}", max_bytes=MAX_BYTES, max_depth=32)
        except BadJson as error:
            raise forms.ValidationError(_("This is not valid JSON: %(why)s") % {"why": error.message}) from error
        if not isinstance(calls, dict):
            raise forms.ValidationError(_("Calls are an object with an entry for each name."))
        return calls

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
        return value
