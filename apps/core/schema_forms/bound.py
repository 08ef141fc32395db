"""A control with its value and faults, as the templates draw it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from apps.core.json_text import Path
from apps.core.schema_forms.containers import ArrayControl, ObjectControl
from apps.core.schema_forms.controls import ChoiceControl, Chosen, Control, SecretControl, TextControl
from apps.core.schema_forms.nodes import ROW_MARK, Node
from apps.core.schema_forms.validation import dotted


@dataclass(slots=True)
class Drawing:
    """What all fields of one form share."""

    prefix: str
    faults: Mapping[str, list[str]]
    secrets_set: frozenset[str] = frozenset()
    secrets_lost: frozenset[str] = frozenset()
    # Whether a template may stand in the place of a value.
    templates: bool = False
    # Paths whose faults some field shows; the others are listed on top.
    shown: set[str] = field(default_factory=set)


class Bound:
    def __init__(self, control: Control, node: Node, path: Path, drawing: Drawing, *, in_new_row: bool = False) -> None:
        self.control = control
        self.node = node
        self.path = dotted(path)
        self._path = path
        self._drawing = drawing
        self._in_new_row = in_new_row
        self.name = f"{drawing.prefix}.{self.path}"
        self.id = f"id_{self.name}"
        self.errors = self._errors()
        self.children: list[Bound] = self._children()

    def _errors(self) -> list[str]:
        found: list[str] = []
        for path, said in self._drawing.faults.items():
            below = self.control.is_leaf and path.startswith(self.path + ".")
            if path == self.path or below:
                found += [text for text in said if text not in found]
                self._drawing.shown.add(path)
        return found

    def _children(self) -> list[Bound]:
        if self.is_template:
            return []
        if isinstance(self.control, ObjectControl):
            return [self._child(control, self.node.child(control.name)) for control in self.control.controls]
        if isinstance(self.control, ArrayControl):
            rows = [
                Bound(self.control.item, row, (*self._path, i), self._drawing) for i, row in enumerate(self.node.rows())
            ]
            return [*rows, Bound(self.control.item, Node(), (*self._path, len(rows)), self._drawing, in_new_row=True)]
        return []

    def _child(self, control: Control, node: Node) -> Bound:
        return Bound(control, node, (*self._path, control.name), self._drawing, in_new_row=self._in_new_row)

    # -- what templates read ------------------------------------------------------------------------------------

    @property
    def is_template(self) -> bool:
        """Whether a template stands where the control would have a value of another kind."""
        return self.control.template_in(self.node) is not None

    @property
    def takes_template(self) -> bool:
        """Whether its box has to be changed for a text before a template can be typed."""
        return self._drawing.templates and not self.is_template and self.control.cannot_hold_text

    @property
    def input_type(self) -> str:
        if isinstance(self.control, TextControl) and "{{" not in self.value:
            return self.control.input_type
        return "text"

    @property
    def template(self) -> str:
        if self.is_template:
            return "forms/schema/input.html"
        if isinstance(self.control, TextControl) and (self.control.is_long or "\n" in self.value):
            return "forms/schema/textarea.html"
        return self.control.template

    @property
    def value(self) -> str:
        return self.node.text

    @property
    def is_checked(self) -> bool:
        return bool(self.node.text)

    @property
    def options(self) -> list[dict[str, Any]]:
        chosen = self.node.values
        known = dict(self.control.options) if isinstance(self.control, Chosen) else {}
        gone = {key: _("%(value)s (not offered)") % {"value": key} for key in chosen if key and key not in known}
        labels = {**known, **gone}
        if [key for key in labels if key in chosen] != chosen:
            # Checked in another order than offered: drawn in theirs, so that it is kept.
            labels = {key: labels[key] for key in (*chosen, *labels) if key in labels}
        return [{"key": key, "label": label, "chosen": key in chosen} for key, label in labels.items()]

    @property
    def offers_nothing(self) -> bool:
        """Whether a select has an empty choice: where a value may be missing or is still missing."""
        return isinstance(self.control, ChoiceControl) and (not self.control.required or not self.node.text)

    @property
    def is_required(self) -> bool:
        if isinstance(self.control, SecretControl):
            return self.control.required and not self.is_set
        return (
            self.control.required and not self._in_new_row and self._path[-1:] != () and isinstance(self._path[-1], str)
        )

    @property
    def help(self) -> str:
        return self.control.help

    @property
    def help_id(self) -> str:
        return f"{self.id}_help"

    @property
    def error_id(self) -> str:
        return f"{self.id}_error"

    @property
    def described_by(self) -> str:
        return " ".join([self.error_id] * bool(self.errors) + [self.help_id] * bool(self.control.help))

    @property
    def is_set(self) -> bool:
        return self.path in self._drawing.secrets_set

    @property
    def was_lost(self) -> bool:
        """A secret that was typed but is not sent back: the form was invalid elsewhere."""
        return self.path in self._drawing.secrets_lost

    @property
    def clear_name(self) -> str:
        return f"{self._drawing.prefix}__clear"

    @property
    def add_name(self) -> str:
        return f"{self._drawing.prefix}__add"

    @property
    def switch_name(self) -> str:
        return f"{self._drawing.prefix}__switch"

    @property
    def remove_name(self) -> str:
        return f"{self._drawing.prefix}__remove"

    @property
    def row_number(self) -> int:
        return int(self._path[-1]) + 1

    @property
    def row_mark(self) -> str:
        """Name of the hidden box that says the row was there before; "" for the blank one."""
        return "" if self._in_new_row else f"{self.name}.{ROW_MARK}"

    @property
    def is_row_of_fields(self) -> bool:
        return isinstance(self.control, ObjectControl)

    @property
    def plain_fields(self) -> list[Bound]:
        return [child for child in self.children if not child.control.advanced]

    @property
    def advanced_fields(self) -> list[Bound]:
        return [child for child in self.children if child.control.advanced]

    @property
    def has_faults(self) -> bool:
        return bool(self.errors) or any(child.has_faults for child in self.children)

    @property
    def advanced_has_faults(self) -> bool:
        return any(child.has_faults for child in self.advanced_fields)

    @property
    def index_mark(self) -> str:
        """What the JavaScript replaces by the number of a new row; another word on each level."""
        return f"__row{sum(isinstance(key, int) or str(key).startswith('__row') for key in self._path)}__"

    @property
    def next_index(self) -> int:
        return len(self.children)

    @property
    def new_row(self) -> Bound | None:
        """A blank row for the JavaScript to copy."""
        if not isinstance(self.control, ArrayControl):
            return None
        silent = Drawing(self._drawing.prefix, {}, templates=self._drawing.templates)
        return Bound(self.control.item, Node(), (*self._path, self.index_mark), silent, in_new_row=True)
