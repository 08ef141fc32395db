"""One control for each kind of value: from value to what a browser posts, and back."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.translation import gettext as _

from apps.core.json_text import INT_MAX, BadJson, Path, parse_json
from apps.core.schema_forms.nodes import MISSING, Missing, Node
from apps.core.schema_forms.texts import choices_of, shown, text_of, title_of
from apps.core.schema_forms.validation import MAX_BYTES, MAX_DEPTH

Faults = dict[Path, list[str]]

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}(?:\.0{1,9})?\Z")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?\Z")


class Control(ABC):
    """Knows its part of the schema, not the value: values live in nodes."""

    template: ClassVar[str]
    # A control without controls inside shows the faults of everything below its path.
    is_leaf: ClassVar[bool] = True

    def __init__(self, schema: Mapping[str, Any], *, name: str, required: bool) -> None:
        self.schema = schema
        self.name = name
        self.required = required
        self.title = title_of(schema, name)
        self.help = text_of(schema, "description")
        self.advanced = schema.get("x-advanced") is True
        self.default: Any = schema.get("default", MISSING)

    def parse(self, node: Node, path: Path, faults: Faults) -> Any:
        """The value, or MISSING when there is none; what cannot be read goes to `faults`.

        A template may stand in the place of any value: whether it may here is for the check of the values to say.
        """
        template = self.template_in(node)
        return self._parse(node, path, faults) if template is None else template

    @abstractmethod
    def _parse(self, node: Node, path: Path, faults: Faults) -> Any: ...

    def template_in(self, node: Node) -> str | None:
        """The text of the box, when it is a template and no value of this kind."""
        text = node.text
        return text.strip() if "{{" in text else None

    def node_of(self, value: Any) -> Node:
        """What the browser would post for `value`; MISSING shows the default."""
        shown_value = self.default if value is MISSING else value
        if isinstance(shown_value, str) and self.template_in(Node([shown_value])) is not None:
            return Node([shown_value])
        return self._node(shown_value)

    def _node(self, value: Any) -> Node:
        return Node() if value is MISSING or value is None else Node([shown(value)])

    def is_blank(self, node: Node) -> bool:
        return not any(value.strip() for value in node.values)

    def tidy(self, node: Node) -> Node:
        """The node as it is drawn again: rows in one sequence, blank ones dropped."""
        return node

    @property
    def cannot_hold_text(self) -> bool:
        """Whether a person has no place in it for a text."""
        return False

    def _nothing(self) -> Any:
        nullable = isinstance(self.schema.get("type"), list) and "null" in self.schema["type"]
        return None if nullable and self.required else MISSING

    @property
    def placeholder(self) -> str:
        if self.default is not MISSING and self.default not in ("", None):
            return shown(self.default)
        examples = self.schema.get("examples")
        return shown(examples[0]) if isinstance(examples, list) and examples else ""


class TextControl(Control):
    """A text; `format` decides on the kind of box."""

    template = "forms/schema/input.html"
    INPUT_TYPES: ClassVar[dict[str, str]] = {"email": "email", "uri": "url", "iri": "url", "date": "date"}

    @property
    def input_type(self) -> str:
        return self.INPUT_TYPES.get(self.schema.get("format", ""), "text")

    @property
    def is_long(self) -> bool:
        form, longest = self.schema.get("format"), self.schema.get("maxLength", 0)
        return form == "textarea" or self.schema.get("x-widget") == "textarea" or (form is None and longest > 200)

    @property
    def max_length(self) -> int | None:
        return self.schema.get("maxLength")

    def template_in(self, node: Node) -> None:
        """Any text is one of its values."""
        return

    @property
    def cannot_hold_text(self) -> bool:
        return self.input_type == "date"

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        text = node.text
        if self.schema.get("format") not in (None, "textarea"):
            text = text.strip()
        if text:
            return text
        cleared = isinstance(self.default, str) and self.default != "" and not self.required
        # Without this, clearing the box would bring the default back when the run starts.
        if cleared and not self.schema.keys() & {"minLength", "pattern", "format"}:
            return ""
        return self._nothing()


class NumberControl(Control):
    template = "forms/schema/input.html"
    input_type = "text"

    @property
    def is_whole(self) -> bool:
        kind = self.schema.get("type")
        return kind == "integer" or (isinstance(kind, list) and "integer" in kind and "number" not in kind)

    @property
    def input_mode(self) -> str:
        """Not a number box: those send nothing when the text is no number, so what was typed would be lost."""
        low = self.schema.get("minimum", self.schema.get("exclusiveMinimum", -1))
        if low < 0:
            return "text"
        return "numeric" if self.is_whole else "decimal"

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        # Chinese and Japanese keyboards type full-width digits.
        text = unicodedata.normalize("NFKC", node.text[:1000]).strip().replace("\u2212", "-")
        if not text:
            return self._nothing()
        number = self._whole(text) if self.is_whole else self._decimal(text)
        if number is None:
            said = _("Enter a whole number.") if self.is_whole else _("Enter a number, with a point for decimals.")
            faults.setdefault(path, []).append(said)
            return MISSING
        return number

    def _whole(self, text: str) -> int | None:
        if not _INTEGER.match(text):
            return None
        number = int(text.partition(".")[0])
        return number if abs(number) <= INT_MAX else None

    def _decimal(self, text: str) -> float | None:
        if not _DECIMAL.match(text):
            return None
        if text.lstrip("+-").isdecimal():
            return self._whole(text)
        number = float(text)
        return number if math.isfinite(number) else None


class BooleanControl(Control):
    template = "forms/schema/boolean.html"
    cannot_hold_text = True

    def _parse(self, node: Node, path: Path, faults: Faults) -> bool:
        return bool(node.text)

    def _node(self, value: Any) -> Node:
        return Node(["on"]) if value is not MISSING and value else Node()


class Chosen(Control):
    """Among given values. A choice is posted as its own text where all are texts, else as JSON."""

    cannot_hold_text = True

    def __init__(self, schema: Mapping[str, Any], *, name: str, required: bool) -> None:
        super().__init__(schema, name=name, required=required)
        pairs = choices_of(self._choice_schema()) or []
        self._plain = all(isinstance(value, str) and value for value, _label in pairs)
        self.options = [(self.key(value), label) for value, label in pairs]
        self._values = {self.key(value): value for value, _label in pairs}

    def _choice_schema(self) -> Mapping[str, Any]:
        return self.schema

    def key(self, value: Any) -> str:
        return str(value) if self._plain else json.dumps(value, ensure_ascii=False, sort_keys=True)

    def _value(self, key: str, path: Path, faults: Faults) -> Any:
        if key not in self._values:
            faults.setdefault(path, []).append(_("Choose one of the given values."))
            return MISSING
        return self._values[key]


class ChoiceControl(Chosen):
    template = "forms/schema/select.html"

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        return self._value(node.text, path, faults) if node.text else MISSING

    def _node(self, value: Any) -> Node:
        return Node() if value is MISSING else Node([self.key(value)])


class CheckboxesControl(Chosen):
    """A list of given values."""

    template = "forms/schema/checkboxes.html"

    def __init__(self, schema: Mapping[str, Any], items: Mapping[str, Any], *, name: str, required: bool) -> None:
        self._items = items
        super().__init__(schema, name=name, required=required)

    def _choice_schema(self) -> Mapping[str, Any]:
        return self._items

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        read = [self._value(key, path, faults) for key in node.values if key]
        found = [value for value in read if value is not MISSING]
        if not found and not self.required and self.default is MISSING:
            return MISSING
        return found

    def _node(self, value: Any) -> Node:
        return Node(list(dict.fromkeys(map(self.key, value)))) if isinstance(value, list) else Node()


class SecretControl(Control):
    """Written, never read: the value goes from the post to the form's `secrets` and is not drawn again."""

    template = "forms/schema/secret.html"

    @property
    def is_long(self) -> bool:
        return self.schema.get("x-widget") == "textarea"

    def _parse(self, node: Node, path: Path, faults: Faults) -> Missing:
        return MISSING

    def template_in(self, node: Node) -> None:
        """It is never read, so never filled in."""
        return

    def node_of(self, value: Any) -> Node:
        return Node()


class JsonControl(Control):
    """For what has no better control: the value as JSON."""

    template = "forms/schema/json.html"

    def template_in(self, node: Node) -> str | None:
        """One that is all of it: those inside of JSON are texts there."""
        text = node.text.strip()
        return text if text.startswith("{{") and text.endswith("}}") else None

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        if not node.text.strip():
            return self._nothing()
        try:
            return parse_json(node.text, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
        except BadJson as error:
            said = _("This is not valid JSON: %(why)s") % {"why": error.message}
            faults.setdefault(path, []).append(said)
            return MISSING

    def _node(self, value: Any) -> Node:
        return Node() if value is MISSING else Node([json.dumps(value, ensure_ascii=False, indent=2)])
