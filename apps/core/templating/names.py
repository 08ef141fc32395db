"""Which names a template may use where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from apps.core.templating.faults import TemplateFault, bit
from apps.core.templating.language import Expression, parse


@dataclass(frozen=True, slots=True)
class Known:
    """`names` as a whole ("today", "run.id"). Each of the `roots` has what may stand behind it; None: anything.

    `elsewhere` are names that exist, but not here, with the sentence that says so.
    """

    names: Collection[str]
    roots: Mapping[str, Collection[str] | None] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)


def canonical(name: tuple[str, ...], names: Collection[str]) -> str:
    """The one of `names` that is meant, written in any case and with or without underscores; "" when it is none."""
    written = ".".join(name).lower()
    if written in names:
        return written
    plain = written.replace("_", "")
    return next((known for known in names if known.replace("_", "") == plain), "")


def root_of(name: tuple[str, ...]) -> str:
    return name[0].lower() if name else ""


def check(text: str, known: Known) -> list[str]:
    """Sentences about what is wrong with a typed text, in the reader's language."""
    try:
        template = parse(text)
    except TemplateFault as fault:
        return [fault.message]
    said = [sentence for each in template.expressions if each.name and (sentence := _unknown(each, known))]
    return list(dict.fromkeys(said))


def _unknown(expression: Expression, known: Known) -> str:
    name, root = expression.name, root_of(expression.name)
    if canonical(name, known.names):
        return ""
    if other := canonical(name, known.elsewhere):
        return known.elsewhere[other]
    written = bit(".".join(name))
    if root not in known.roots:
        if root in known.elsewhere:
            return known.elsewhere[root]
        offered = ", ".join([*known.names, *(f"{each}.…" for each in known.roots)])
        return _("There is no name “%(name)s”; known are: %(known)s.") % {"name": written, "known": offered}
    below = known.roots[root]
    if len(name) == 1:
        return _("“%(name)s” is not complete: write %(name)s.… with what is meant.") % {"name": written}
    if below is not None and name[1] not in below:
        return _not_below(root, name[1], below)
    return ""


def _not_below(root: str, name: str, below: Collection[str]) -> str:
    values = {"name": bit(name), "known": ", ".join(sorted(map(str, below))[:20])}
    if root == "params":
        return _("There is no parameter “%(name)s” that a template can read.") % values
    if root == "upstream":
        return _("“%(name)s” is not upstream of this job.") % values
    if root == "call":
        return _("The job has no call “%(name)s”.") % values
    return _("There is no “%(name)s” here.") % values


def names_in(text: str) -> list[tuple[str, ...]]:
    """The names that a text asks for, as typed. A text that cannot be read has none."""
    try:
        return [each.name for each in parse(text).expressions if each.name]
    except TemplateFault:
        return []
