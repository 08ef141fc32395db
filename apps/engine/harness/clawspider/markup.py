"""A small HTML tree with selectors, enough for most pages without a third-party parser.

Selectors: `tag`, `.class`, `#id`, `[attr]`, `[attr=value]` (also ^= $= *=), `a b` (inside), `a > b` (child), `a, b`.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Iterator, NamedTuple

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_HIDDEN = frozenset(("script", "style", "template"))
# A tag on the right ends an open tag on the left, as browsers do it.
_CLOSED_BY = {
    "p": frozenset(
        (
            *("address", "article", "aside", "blockquote", "div", "dl", "fieldset", "footer", "form", "h1", "h2", "h3"),
            *("h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul"),
        )
    ),
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "option": frozenset(("option", "optgroup")),
    "tr": frozenset(("tr", "tbody", "tfoot")),
    "td": frozenset(("td", "th", "tr", "tbody", "tfoot")),
    "th": frozenset(("td", "th", "tr", "tbody", "tfoot")),
}
_SPACE = re.compile(r"\s+")
_PART = re.compile(
    r"""(?P<tag>[a-zA-Z][\w-]*|\*) | \.(?P<cls>[\w-]+) | \#(?P<id>[\w-]+) |
        \[\s*(?P<attr>[\w:-]+)\s*(?:(?P<op>[\^$*]?=)\s*(?P<value>"[^"]*"|'[^']*'|[^\]\s]+)\s*)?\]""",
    re.VERBOSE,
)
_STEP = re.compile(r"\s*(>)\s*|\s+")
_MAX_DEPTH = 400


class SelectorError(ValueError):
    """The selector is not one of the supported forms."""


class Node:
    """An element. Missing attributes read as empty text, so that chains need no checks."""

    __slots__ = ("attributes", "children", "parent", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], parent: Node | None = None) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children: list[Node | str] = []

    def __repr__(self) -> str:
        return f"<{self.tag} {self.attributes}>"

    def get(self, attribute: str, default: str = "") -> str:
        return self.attributes.get(attribute, default)

    @property
    def text(self) -> str:
        """All text inside, runs of white space made one space."""
        return _SPACE.sub(" ", "".join(self._texts())).strip()

    @property
    def classes(self) -> list[str]:
        return self.get("class").split()

    def select(self, selector: str) -> list[Node]:
        """All elements inside that match, in document order."""
        chains = [_parse_chain(part) for part in selector.split(",")]
        return [node for node in self.walk() if any(_matches_chain(node, chain, self) for chain in chains)]

    def first(self, selector: str) -> Node | None:
        return next(iter(self.select(selector)), None)

    def text_of(self, selector: str, default: str = "") -> str:
        node = self.first(selector)
        return node.text if node else default

    def attribute_of(self, selector: str, attribute: str, default: str = "") -> str:
        node = self.first(selector)
        return node.get(attribute, default) if node else default

    def walk(self) -> Iterator[Node]:
        """All elements inside, in document order."""
        todo = [child for child in reversed(self.children) if isinstance(child, Node)]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(child for child in reversed(node.children) if isinstance(child, Node))

    def _texts(self) -> Iterator[str]:
        todo: list[Node | str] = list(reversed(self.children))
        while todo:
            part = todo.pop()
            if isinstance(part, str):
                yield part
            elif part.tag == "br":
                yield "\n"
            elif part.tag not in _HIDDEN:
                todo.extend(reversed(part.children))


def parse(html: str) -> Node:
    """The tree of a page; never fails, whatever the page looks like."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while len(self._open) > 1 and tag in _CLOSED_BY.get(self._open[-1].tag, ()):
            self._open.pop()
        node = Node(tag, {name: value or "" for name, value in reversed(attrs)}, self._open[-1])
        self._open[-1].children.append(node)
        if tag not in _VOID and len(self._open) < _MAX_DEPTH:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        for place in range(len(self._open) - 1, 0, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


class _Test(NamedTuple):
    kind: str
    name: str
    operator: str = ""
    value: str = ""


class _Step(NamedTuple):
    tests: tuple[_Test, ...]
    child: bool  # has to be a direct child of what the step before matched


def _parse_chain(selector: str) -> list[_Step]:
    text, place, child = selector.strip(), 0, False
    steps: list[_Step] = []
    while place < len(text):
        tests: list[_Test] = []
        match = _PART.match(text, place)
        while match:
            tests.append(_test_of(match))
            place = match.end()
            match = _PART.match(text, place)
        gap = _STEP.match(text, place)
        if not tests or not (gap or place == len(text)):
            raise SelectorError(f"Selector {selector!r} is not understood at {text[place:]!r}.")
        steps.append(_Step(tuple(tests), child))
        child = bool(gap and gap.group(1))
        place = gap.end() if gap else place
    if not steps or child:
        raise SelectorError(f"Selector {selector!r} is empty or not finished.")
    return steps


def _test_of(match: re.Match[str]) -> _Test:
    part = match.groupdict()
    if part["tag"]:
        return _Test("tag", part["tag"].lower())
    if part["cls"]:
        return _Test("class", part["cls"])
    if part["id"]:
        return _Test("attribute", "id", "=", part["id"])
    value = part["value"] or ""
    if value[:1] in ("'", '"'):
        value = value[1:-1]
    return _Test("attribute", part["attr"].lower(), part["op"] or "", value)


def _matches_chain(node: Node, chain: list[_Step], top: Node) -> bool:
    step = chain[-1]
    if not all(_passes(node, test) for test in step.tests):
        return False
    if len(chain) == 1:
        return True
    above = node.parent
    while above is not None and above is not top:
        if _matches_chain(above, chain[:-1], top):
            return True
        if step.child:
            return False
        above = above.parent
    return False


def _passes(node: Node, test: _Test) -> bool:
    if test.kind == "tag":
        return test.name in ("*", node.tag)
    if test.kind == "class":
        return test.name in node.classes
    value = node.attributes.get(test.name)
    if value is None:
        return False
    return {
        "": True,
        "=": value == test.value,
        "^=": bool(test.value) and value.startswith(test.value),
        "$=": bool(test.value) and value.endswith(test.value),
        "*=": bool(test.value) and test.value in value,
    }[test.operator]
