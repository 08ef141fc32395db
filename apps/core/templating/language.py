"""Reading a template: texts and expressions, or the sentence that says what is not understood."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.core.templating.faults import TemplateFault, bit
from apps.core.templating.moments import check_format, check_offset

MAX_TEMPLATE = 8 * 1024
MAX_FILTERS = 10
_OPENING = re.compile(r"\{\{|\{%|\{#")
_BRACE = re.compile(r"[{}]")
_PIECE = re.compile(
    r"\s*(?:(?P<close>\}\})|(?P<quoted>\"[^\"]*\"|'[^']*')|(?P<word>\w[\w-]*)|(?P<mark>[.|:])|(?P<odd>.))", re.DOTALL
)


def _no_argument_check(argument: str) -> None:
    return None


# Filters, and what looks at their argument; None: they take no argument.
FILTERS: dict[str, Callable[[str], None] | None] = {
    "date": check_format,
    "offset": check_offset,
    "default": _no_argument_check,
    "upper": None,
    "lower": None,
    "json": None,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """`source` as typed. Either a name in its parts, or a quoted text."""

    source: str
    name: tuple[str, ...]
    filters: tuple[tuple[str, str], ...] = ()
    quoted: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def whole(self) -> Expression | None:
        """The expression that is all of it: its value keeps its type."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Expression) else None


def is_template(value: object) -> bool:
    """Whether it is a text that has to be read, or refused, as a template."""
    if not isinstance(value, str):
        return False
    if _OPENING.search(value) is not None:
        return True
    try:
        _literal_depth(value, 0, len(value) if "}}" in value else 0, 0)
    except TemplateFault:
        return True
    return False


def parse(text: str) -> Template:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE:
        if _OPENING.search(text) is None:
            return Template((text,))
        raise TemplateFault(_("A text with templates has at most %(kib)d KiB.") % {"kib": MAX_TEMPLATE // 1024})
    parts: list[str | Expression] = []
    at = depth = 0
    while at < len(text):
        found = _OPENING.search(text, at)
        end = found.start() if found else len(text)
        depth = _literal_depth(text, at, end, depth)
        if end > at:
            parts.append(text[at:end])
        if found is None:
            break
        expression, at = _expression(text, end)
        parts.append(expression)
    return Template(tuple(parts) or ("",))


def _literal_depth(text: str, start: int, end: int, depth: int) -> int:
    """How many single braces are open. `}}` may close two of them, as in JSON inside JSON; else it is a mistake."""
    at = start
    while found := _BRACE.search(text, at, end):
        at = found.end()
        if found[0] == "{":
            depth += 1
        elif depth:
            depth -= 1
        elif text.startswith("}}", found.start()):
            raise TemplateFault(
                _("“%(bit)s” ends a template that has no beginning: “{{” is missing.")
                % {"bit": bit(text[max(0, found.start() - 20) : found.start() + 2])}
            )
    return depth


class _Reader:
    """The tokens of one expression, from behind its `{{`."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start, self.at = text, start, start + 2
        self.kind, self.piece = "", ""

    def next(self) -> None:
        found = _PIECE.match(self.text, self.at)
        if found is None:
            raise self.fault(_("“%(bit)s” has no end: “}}” is missing."))
        self.at = found.end()
        self.kind = found.lastgroup or ""
        self.piece = found[self.kind]

    @property
    def source(self) -> str:
        return self.text[self.start : self.at]

    def fault(self, sentence: str, **values: str) -> TemplateFault:
        end = self.text.find("}}", self.at)
        rest = self.text[self.start : end + 2 if end >= 0 else len(self.text)]
        return TemplateFault(sentence % {"bit": bit(rest), **values})

    def odd(self) -> TemplateFault:
        piece = {"close": "}}"}.get(self.kind, self.piece)
        if piece == "(":
            return self.fault(_("“%(bit)s” is not possible: a template calls nothing, it only has names and filters."))
        if piece == "[":
            return self.fault(_("“%(bit)s” is not possible: write a place in a list with a point, as in rows.0.name."))
        if piece in "{}":
            return self.fault(_("The braces of “%(bit)s” do not match."))
        if piece.startswith("_"):
            return self.fault(
                _("“%(bit)s” is not possible: “%(piece)s” begins with an underscore, which no name does."),
                piece=bit(piece),
            )
        if not piece.strip() or self.kind == "close":
            return self.fault(_("Something is missing in “%(bit)s”."))
        if piece in "\"'":
            return self.fault(_("A quotation mark of “%(bit)s” has no end."))
        return self.fault(_("“%(piece)s” is not understood in “%(bit)s”."), piece=bit(piece))


def _expression(text: str, start: int) -> tuple[Expression, int]:
    reader = _Reader(text, start)
    if text.startswith("{%", start):
        raise _refused(text, start, "%}", _("“%(bit)s” is not possible: there are no commands, only {{ name }}."))
    if text.startswith("{#", start):
        raise _refused(text, start, "#}", _("“%(bit)s” is not possible: there are no comments, only {{ name }}."))
    reader.next()
    quoted: str | None = None
    name: tuple[str, ...] = ()
    if reader.kind == "quoted":
        quoted = reader.piece[1:-1]
        reader.next()
    else:
        name = _name(reader)
    filters: list[tuple[str, str]] = []
    while reader.piece == "|" and reader.kind == "mark":
        filters.append(_filter(reader))
        if len(filters) > MAX_FILTERS:
            raise reader.fault(_("“%(bit)s” has too many filters."))
    if reader.kind != "close":
        raise reader.odd()
    return Expression(reader.source, name, tuple(filters), quoted), reader.at


def _refused(text: str, start: int, closing: str, sentence: str) -> TemplateFault:
    end = text.find(closing, start)
    return TemplateFault(sentence % {"bit": bit(text[start : end + 2 if end >= 0 else len(text)])})


def _name(reader: _Reader) -> tuple[str, ...]:
    """`name.part."part with spaces"`; one point may stand in front, as other panels write it."""
    if reader.piece == "." and reader.kind == "mark":
        reader.next()
    parts: list[str] = []
    while True:
        if reader.kind == "word" and not reader.piece.startswith("_"):
            parts.append(reader.piece)
        elif reader.kind == "quoted" and parts:
            parts.append(reader.piece[1:-1])
        else:
            raise reader.odd()
        reader.next()
        if not (reader.piece == "." and reader.kind == "mark"):
            return tuple(parts)
        reader.next()


def _filter(reader: _Reader) -> tuple[str, str]:
    reader.next()
    if reader.kind != "word":
        raise reader.odd()
    name = reader.piece.lower()
    if name not in FILTERS:
        known = ", ".join(FILTERS)
        raise reader.fault(_("There is no filter “%(name)s”; known are: %(known)s."), name=bit(name), known=known)
    check = FILTERS[name]
    reader.next()
    given = reader.piece == ":" and reader.kind == "mark"
    if given is not (check is not None):
        wanted = _("The filter “%(name)s” needs a text in quotes after a colon.")
        raise reader.fault(_("The filter “%(name)s” takes nothing.") if given else wanted, name=name)
    if check is None:
        return name, ""
    reader.next()
    if reader.kind != "quoted":
        raise reader.fault(_("The filter “%(name)s” needs a text in quotes after a colon."), name=name)
    argument = reader.piece[1:-1]
    check(argument)
    reader.next()
    return name, argument
