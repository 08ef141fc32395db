"""Putting values into a template."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum
from typing import Any, Final

import orjson
from django.utils.translation import gettext as _

from apps.core.templating.faults import TemplateFault, bit
from apps.core.templating.language import Expression, parse
from apps.core.templating.moments import Moment, read_moment
from apps.core.templating.names import canonical, root_of

MAX_RESULT = 64 * 1024


class Missing(Enum):
    MISSING = "missing"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Values:
    """`names` as a whole ("today", "run.id"), `roots` by their first part ({"upstream": {job: output}})."""

    names: Mapping[str, Any] = field(default_factory=dict)
    roots: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    zone: tzinfo = UTC

    def of(self, expression: Expression) -> Any:
        if expression.quoted is not None:
            return expression.quoted
        known = canonical(expression.name, self.names)
        if known:
            return self.names[known]
        root = root_of(expression.name)
        if root not in self.roots:
            raise TemplateFault(_("There is no name “%(name)s”.") % {"name": bit(".".join(expression.name))})
        found: Any = self.roots[root]
        for part in expression.name[1:]:
            found = _inside(found, part)
        return found


def _inside(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isdecimal() and len(part) <= 9 and int(part) < len(value):
        return value[int(part)]
    return MISSING


def render(text: str, values: Values) -> Any:
    """The text with its values. An expression that is all of the text gives its value as it is, be it a list."""
    template = parse(text)
    if not template.expressions:
        return text
    if template.whole is not None:
        value = _value(template.whole, values)
        if value is MISSING:
            raise _missing(template.whole)
        return _bounded(value.shown() if isinstance(value, Moment) else value)
    return _joined([part if isinstance(part, str) else _text(part, values) for part in template.parts])


# A text whose last names are known later only: texts, and for each such name the filters to lay on its value.
Parts = list[str | list[str]]


def render_for_later(text: str, values: Values, later: str) -> str | Parts:
    """All put in except the name `later`; that in pieces for `finished`, when the text asks for it."""
    found: Parts = []
    for part in parse(text).parts:
        if isinstance(part, str):
            found.append(part)
        elif not canonical(part.name, (later,)):
            found.append(_text(part, values))
        else:
            found.append([filtered for filtered, _argument in part.filters if filtered in ("upper", "lower")])
    if any(isinstance(part, list) for part in found):
        return found
    return _joined([part for part in found if isinstance(part, str)])


def finished(parts: Sequence[Any], value: str) -> str:
    """What `render_for_later` left open, with the value of its name."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        text = value
        for each in part:
            text = text.upper() if each == "upper" else text.lower()
        texts.append(text)
    return _joined(texts)


def _joined(texts: Collection[str]) -> str:
    if sum(map(len, texts)) > MAX_RESULT:
        raise _too_large()
    return str(_bounded("".join(texts)))


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        if "\0" in value:
            raise TemplateFault(_("What is put in holds a NUL character, which cannot be passed on."))
        size = len(value.encode("utf-8", "surrogatepass"))
    else:
        size = len(_as_json(value))
    if size > MAX_RESULT:
        raise _too_large()
    return value


def _too_large() -> TemplateFault:
    return TemplateFault(_("With its values this is larger than %(kib)d KiB.") % {"kib": MAX_RESULT // 1024})


def _as_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, RecursionError) as error:
        raise TemplateFault(_("What is put in cannot be written as JSON.")) from error


def _missing(expression: Expression) -> TemplateFault:
    name, root = expression.name, root_of(expression.name)
    if root == "upstream":
        sentence = _("The upstream job “%(of)s” has put out no “%(path)s”.")
    elif root == "call":
        sentence = _("The answer to the call “%(of)s” has no “%(path)s”.")
    else:
        return TemplateFault(_("“%(name)s” has no value.") % {"name": bit(".".join(name))})
    return TemplateFault(sentence % {"of": bit(name[1]) if len(name) > 1 else "", "path": bit(".".join(name[2:]))})


# -- filters --------------------------------------------------------------------------------------------------------


def _value(expression: Expression, values: Values) -> Any:
    value = values.of(expression)
    for name, argument in expression.filters:
        value = _filtered(name, argument, value, expression, values.zone)
    return value


def _filtered(name: str, argument: str, value: Any, expression: Expression, zone: tzinfo) -> Any:
    if name == "default":
        return argument if value is MISSING or value is None or value == "" else value
    if value is MISSING:
        # A default may follow.
        return MISSING
    if name in ("date", "offset"):
        moment = _moment(value, expression, zone)
        return moment.formatted(argument) if name == "date" else moment.moved(argument)
    if name == "json":
        return _as_json(value.shown() if isinstance(value, Moment) else value)
    text = _plain(value, expression)
    return text.upper() if name == "upper" else text.lower()


def _moment(value: Any, expression: Expression, zone: tzinfo) -> Moment:
    moment = value if isinstance(value, Moment) else read_moment(value, zone) if isinstance(value, str) else None
    if moment is None:
        raise TemplateFault(_("“%(name)s” is no date.") % {"name": bit(expression.source)})
    return moment


def _text(expression: Expression, values: Values) -> str:
    value = _value(expression, values)
    if value is MISSING or value is None:
        raise _missing(expression)
    return _plain(value, expression)


def _plain(value: Any, expression: Expression) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Moment):
        return value.shown()
    if isinstance(value, Mapping | list):
        raise TemplateFault(
            _("“%(name)s” is a list or an object: write it alone, or with “| json”.") % {"name": bit(expression.source)}
        )
    return _as_json(value)
