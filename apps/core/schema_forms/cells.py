"""Parameters from the cells of a table: texts, typed as the schema says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from apps.core.errors import Invalid
from apps.core.json_text import BadJson, parse_json
from apps.core.schema_forms.builder import build
from apps.core.schema_forms.containers import ArrayControl, ObjectControl
from apps.core.schema_forms.controls import (
    BooleanControl,
    CheckboxesControl,
    ChoiceControl,
    Control,
    Faults,
    SecretControl,
)
from apps.core.schema_forms.nodes import MISSING, Missing, Node
from apps.core.schema_forms.validation import MAX_BYTES, MAX_DEPTH

_TRUE = frozenset(("true", "yes", "y", "on", "1", "是", "真"))
_FALSE = frozenset(("false", "no", "n", "off", "0", "否", "假"))


class BadCell(Invalid):
    """The text is no value of the parameter."""


class Cells:
    """Reads cells by the names of the parameters. An empty cell is no value."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        controls = build(schema).controls
        self._controls: dict[str, Control] = {control.name: control for control in controls}
        self.secrets = frozenset(control.name for control in controls if isinstance(control, SecretControl))

    @property
    def names(self) -> list[str]:
        """Parameters that a table may hold, as their author ordered them."""
        return [name for name in self._controls if name not in self.secrets]

    def title(self, name: str) -> str:
        return self._controls[name].title

    def put(self, values: dict[str, Any], name: str, text: str) -> None:
        """Set what the cell says, unless it is empty."""
        value = self.read(name, text)
        if value is not MISSING:
            values[name] = value

    def read(self, name: str, text: str) -> Any | Missing:
        control = self._controls[name]
        if not text.strip():
            return MISSING
        if "{{" in text:
            # A template: what comes out of it is typed when it is filled in.
            return text
        if isinstance(control, BooleanControl):
            return _truth(text)
        if isinstance(control, ChoiceControl):
            text = _choice(control, text.strip())
        elif isinstance(control, ArrayControl | CheckboxesControl):
            return _list(control, text)
        elif isinstance(control, ObjectControl):
            return _json(text)
        faults: Faults = {}
        value = control.parse(Node([text]), (), faults)
        if faults:
            raise BadCell(next(iter(faults.values()))[0])
        return value


def _truth(text: str) -> bool:
    word = text.strip().casefold()
    if word not in _TRUE | _FALSE:
        raise BadCell(_("Enter yes or no."))
    return word in _TRUE


def _choice(control: ChoiceControl, text: str) -> str:
    """Its value, or as people see it in the form."""
    if text in dict(control.options):
        return text
    return next((key for key, label in control.options if label == text), text)


def _list(control: ArrayControl | CheckboxesControl, text: str) -> Any:
    """As JSON, or one entry a line."""
    if text.strip().startswith("["):
        return _json(text)
    entries = [line for line in text.splitlines() if line.strip()]
    faults: Faults = {}
    if isinstance(control, CheckboxesControl):
        value = control.parse(Node([entry.strip() for entry in entries]), (), faults)
    else:
        rows = {str(place): Node([entry]) for place, entry in enumerate(entries)}
        value = control.parse(Node(children=rows), (), faults)
    if faults:
        raise BadCell(next(iter(faults.values()))[0])
    return value


def _json(text: str) -> Any:
    try:
        return parse_json(text, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except BadJson as error:
        raise BadCell(_("This is not valid JSON: %(why)s") % {"why": error.message}) from error
