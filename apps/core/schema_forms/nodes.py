"""What a browser posts, as a tree: `p.rows.0.name=x` is node rows > 0 > name with the value x."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from django.http import QueryDict

from apps.core.schema_forms.validation import MAX_DEPTH


class Missing(Enum):
    MISSING = "missing"


MISSING: Final = Missing.MISSING

# Marks a row that was there before: it stays, even when all of it is blank. No property can have this name.
ROW_MARK = "!"


@dataclass(slots=True)
class Node:
    values: list[str] = field(default_factory=list)
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As typed, with the line ends that browsers turn into CR LF turned back."""
        return self.values[-1].replace("\r\n", "\n").replace("\r", "\n") if self.values else ""

    def child(self, name: str) -> Node:
        return self.children.get(name) or Node()

    def rows(self) -> list[Node]:
        """Children with a number for a name, in that order."""
        numbered = [(int(name), node) for name, node in self.children.items() if name.isdecimal() and len(name) <= 9]
        return [node for _number, node in sorted(numbered, key=lambda pair: pair[0])]


def posted(data: QueryDict, prefix: str) -> Node:
    """The tree below `prefix.`; names nested deeper than any schema are left out, they become unknown ones above."""
    root = Node()
    for name, values in data.lists():
        if not name.startswith(prefix + "."):
            continue
        node = root
        for part in name[len(prefix) + 1 :].split(".", 2 * MAX_DEPTH):
            node = node.children.setdefault(part, Node())
        node.values = [str(value) for value in values]
    return root


def posted_bytes(data: QueryDict, prefix: str) -> int:
    return sum(
        len(name) + sum(len(str(value).encode("utf-8", "replace")) for value in values)
        for name, values in data.lists()
        if name.startswith(prefix)
    )
