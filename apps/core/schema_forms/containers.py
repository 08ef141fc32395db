"""Controls that hold controls: objects and lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from apps.core.json_text import Path
from apps.core.schema_forms.controls import Control, Faults
from apps.core.schema_forms.nodes import MISSING, ROW_MARK, Node

MAX_ROWS = 1000


class ObjectControl(Control):
    template = "forms/schema/object.html"
    is_leaf = False

    def __init__(self, schema: Mapping[str, Any], controls: Sequence[Control], *, name: str, required: bool) -> None:
        super().__init__(schema, name=name, required=required)
        self.controls = list(controls)
        self._names = {control.name for control in controls}

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        values: dict[str, Any] = {}
        for name in node.children.keys() - self._names - {ROW_MARK}:
            faults[*path, name] = [_("There is no parameter of this name.")]
        for control in self.controls:
            value = control.parse(node.child(control.name), (*path, control.name), faults)
            if value is not MISSING:
                values[control.name] = value
        if not self.required and self.default is MISSING and values == self._untouched():
            return MISSING
        return values

    def _untouched(self) -> dict[str, Any]:
        """What comes back when nobody types anything."""
        values = {c.name: c.parse(c.node_of(MISSING), (), {}) for c in self.controls}
        return {name: value for name, value in values.items() if value is not MISSING}

    def _node(self, value: Any) -> Node:
        given: Mapping[str, Any] = value if isinstance(value, dict) else {}
        return Node(children={c.name: c.node_of(given.get(c.name, MISSING)) for c in self.controls})

    def is_blank(self, node: Node) -> bool:
        if ROW_MARK in node.children or self.template_in(node) is not None:
            return False
        return all(control.is_blank(node.child(control.name)) for control in self.controls)

    def tidy(self, node: Node) -> Node:
        tidied = {c.name: c.tidy(node.child(c.name)) for c in self.controls}
        extra = {name: child for name, child in node.children.items() if name not in self._names}
        return Node(node.values, {**tidied, **extra})


class ArrayControl(Control):
    """Rows of one control. The last row drawn is always blank, so that one more can be typed without JavaScript."""

    template = "forms/schema/rows.html"
    is_leaf = False

    def __init__(self, schema: Mapping[str, Any], item: Control, *, name: str, required: bool) -> None:
        super().__init__(schema, name=name, required=required)
        self.item = item

    def _parse(self, node: Node, path: Path, faults: Faults) -> Any:
        rows = self.tidy(node).rows()
        if len(rows) > MAX_ROWS:
            faults.setdefault(path, []).append(_("At most %(limit)s entries are allowed.") % {"limit": MAX_ROWS})
            return []
        values = [self.item.parse(row, (*path, index), faults) for index, row in enumerate(rows)]
        for name in node.children:
            if not name.isdecimal():
                faults[*path, name] = [_("There is no parameter of this name.")]
        if not values and not self.required and self.default is MISSING:
            return MISSING
        return [None if value is MISSING else value for value in values]

    def _node(self, value: Any) -> Node:
        entries = value if isinstance(value, list) else []
        nodes = {str(index): self.item.node_of(entry) for index, entry in enumerate(entries)}
        if isinstance(self.item, ObjectControl):
            for node in nodes.values():
                node.children[ROW_MARK] = Node(["1"])
        return Node(children=nodes)

    def is_blank(self, node: Node) -> bool:
        return self.template_in(node) is None and all(self.item.is_blank(row) for row in node.rows())

    def tidy(self, node: Node) -> Node:
        rows = [self.item.tidy(row) for row in node.rows() if not self.item.is_blank(row)]
        other = {name: child for name, child in node.children.items() if not name.isdecimal()}
        return Node(node.values, {**{str(index): row for index, row in enumerate(rows)}, **other})


def kept(before: Any, after: Any) -> bool:
    """Whether everything in `before` is still in `after`; defaults and “no” may have been added."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(name in after and kept(before[name], after[name]) for name in before)
    if isinstance(before, list):
        return isinstance(after, list) and len(before) == len(after) and all(map(kept, before, after))
    return type(before) is type(after) and json.dumps(before) == json.dumps(after)
