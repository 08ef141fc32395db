"""Cron expressions as people write them, and as they are stored: five fields of numbers.

What comes out means the same to cronsim (which computes the times) and to the crontab rows of django-celery-beat
(which keep it): no names, no "7" for Sunday, no range over the end, no "5/15".
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core.visible_text import visible_text
from apps.jobs.timing.faults import BadRule

LONGEST = 500
SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
WEEKDAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}
# Has no factor in common with 60: sixty jobs in a row take sixty different minutes.
SPREAD_STEP = 37

_TERM = re.compile(r"(?P<first>\*|[A-Z]+|[0-9]{1,4})(?:-(?P<last>[A-Z]+|[0-9]{1,4}))?(?:/(?P<step>[0-9]{1,4}))?")
_SPREAD = re.compile(r"[~H](?:/(?P<step>[0-9]{1,2}))?")
_EXTRA = re.compile(r"\?|L|LW|[0-9]+[LW]")


@dataclass(frozen=True)
class Field:
    """One of the five; `longest` is what the crontab row has room for."""

    name: str | Promise
    low: int
    high: int
    longest: int
    names: dict[str, int]

    @property
    def size(self) -> int:
        return self.high - self.low + 1


FIELDS = (
    Field(gettext_lazy("minute"), 0, 59, 240, {}),
    Field(gettext_lazy("hour"), 0, 23, 96, {}),
    Field(gettext_lazy("day of month"), 1, 31, 124, {}),
    Field(gettext_lazy("month"), 1, 12, 64, MONTHS),
    Field(gettext_lazy("day of week"), 0, 6, 64, WEEKDAYS),
)
MINUTE, HOUR, DAY, MONTH, WEEKDAY = FIELDS


def check_cron(text: str, *, seed: int = 0) -> str:
    """The expression in five plain fields, `@daily`, names, wrapped ranges and `~` resolved; or BadRule."""
    if not text.strip():
        raise _bad(_("Enter a cron expression such as 30 9 * * 1-5."))
    if len(text) > LONGEST:
        raise _bad(_("A cron expression has at most %(n)d characters.") % {"n": LONGEST})
    resolved = _plain(" ".join(spread(text, seed).split()))
    if len(resolved) > LONGEST:
        raise _bad(_("A cron expression has at most %(n)d characters.") % {"n": LONGEST})
    return resolved


def spread(text: str, seed: int) -> str:
    """The expression with the minute that this seed (the number of a job or schedule) always gets for `~` or `H`.

    `~/15` is every 15 minutes, beginning at a minute of its own.
    """
    minute, *rest = text.split() or [""]
    found = _SPREAD.fullmatch(minute.upper())
    if found is None:
        return text
    step = int(found["step"] or 60)
    if not 1 <= step <= 60:
        raise _bad(_step_fault(MINUTE, step))
    own = seed * SPREAD_STEP % step
    return " ".join((str(own) if step == 60 else f"{own}-59/{step}", *rest))


def joined(*, minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str) -> str:
    """One expression of the five columns of a crontab row; beat allows blanks inside a column."""
    columns = (minute, hour, day_of_month, month_of_year, day_of_week)
    return " ".join("".join(column.split()) or "*" for column in columns)


def values_of(text: str, field: Field) -> list[int]:
    """What a resolved field stands for, ascending."""
    return sorted({value for term in text.split(",") for value in _values(term, field)})


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    """Kept, because a valid expression is asked for again and again; a refusal is not, for it is in a language."""
    parts = text.split()
    if len(parts) == 1 and parts[0].startswith("@"):
        return _shorthand(parts[0])
    if len(parts) == 6:
        raise _bad(_("This has six fields; seconds are not supported. For less than a minute take an interval."))
    if len(parts) != 5:
        sentence = _(
            "A cron expression has five fields (minute, hour, day of month, month, day of week); this has %(n)d."
        )
        raise _bad(sentence % {"n": len(parts)})
    fields = [_field(part, field) for part, field in zip(parts, FIELDS, strict=True)]
    _check_dates(fields)
    return " ".join(fields)


def _shorthand(word: str) -> str:
    try:
        return SHORTHANDS[word.lower()]
    except KeyError:
        known = ", ".join(SHORTHANDS)
        raise _bad(
            _("“%(word)s” is not known. Known: %(known)s.") % {"word": word.lower()[:40], "known": known}
        ) from None


def _field(text: str, field: Field) -> str:
    terms: list[str] = []
    for term in text.split(","):
        terms += _terms(term, field)
    if "*" in terms:
        return "*"
    plain = ",".join(dict.fromkeys(terms))
    if len(plain) > field.longest:
        raise _bad(_("%(field)s: at most %(n)d characters.") % {"field": _named(field), "n": field.longest})
    return plain


def _terms(text: str, field: Field) -> list[str]:
    """A term between commas in plain terms: a range over the end becomes two of them."""
    found = _TERM.fullmatch(text.upper())
    if found is None or (found["first"] == "*" and found["last"]):
        raise _bad(_term_fault(text, field))
    step = int(found["step"]) if found["step"] else 1
    # More than the largest value would mean "once": whoever writes */90 means something else.
    if not 1 <= step <= field.high:
        raise _bad(_step_fault(field, step))
    if found["first"] == "*":
        return ["*" if step == 1 else f"*/{step}"]
    first = _number(found["first"], field)
    if found["last"] is None:
        return [str(first)] if found["step"] is None else [_range(first, field.high, step)]
    last = _number(found["last"], field)
    # From Sunday to Sunday, written 0-7, is the whole week.
    if field is WEEKDAY and found["first"].strip("0") == "" and found["last"].lstrip("0") == "7":
        last = field.high
    # What is left is a week that ends on Sunday, or a range over the end of the day, the month or the year.
    if last >= first:
        return [_range(first, last, step)]
    if step == 1:
        return [_range(first, field.high, 1), _range(field.low, last, 1)]
    over = [*range(first, field.high + 1), *range(field.low, last + 1)]
    return [str(value) for value in over[::step]]


def _range(first: int, last: int, step: int) -> str:
    if first + step > last:
        return str(first)
    return f"{first}-{last}" if step == 1 else f"{first}-{last}/{step}"


def _number(text: str, field: Field) -> int:
    if text in field.names:
        return field.names[text]
    if not text.isdecimal():
        raise _bad(_term_fault(text, field))
    number = int(text)
    if field is WEEKDAY and number == 7:
        return 0
    if not field.low <= number <= field.high:
        sentence = _("%(field)s: %(value)s is not between %(low)d and %(high)d.")
        raise _bad(sentence % {"field": _named(field), "value": text, "low": field.low, "high": _highest(field)})
    return number


def _values(term: str, field: Field) -> Iterable[int]:
    span, _slash, step = term.partition("/")
    first, _dash, last = span.partition("-")
    if first == "*":
        return range(field.low, field.high + 1, int(step or 1))
    return range(int(first), int(last or first) + 1, int(step or 1))


def _check_dates(fields: list[str]) -> None:
    """Refuses days that never come, such as 31 February; weekdays may still bring such a schedule about."""
    days, months = values_of(fields[2], DAY), values_of(fields[3], MONTH)
    if not (fields[2].startswith("*") or fields[4].startswith("*")):
        return
    # 2024 is a leap year.
    if days[0] > max(calendar.monthrange(2024, month)[1] for month in months):
        raise _bad(_("This never fires: none of the chosen months has a day %(day)d.") % {"day": days[0]})


def _term_fault(text: str, field: Field) -> str:
    shown = {"field": _named(field), "term": visible_text(text[:40])}
    if not text:
        return _("%(field)s: there is nothing before, after or between two commas.") % shown
    if field is not MINUTE and _SPREAD.fullmatch(text.upper()):
        return _("%(field)s: “%(term)s” spreads minutes and stands in the first field only.") % shown
    if _EXTRA.fullmatch(text.upper()) or "#" in text:
        return _("%(field)s: “%(term)s” is not understood; L, W, # and ? are not supported.") % shown
    if field.names and text.isascii() and text.isalpha():
        return _("%(field)s: there is no “%(term)s”. Known: %(known)s.") % {**shown, "known": ", ".join(field.names)}
    return _("%(field)s: “%(term)s” is not understood. Write numbers, lists 1,15, ranges 1-5 and steps */10.") % shown


def _step_fault(field: Field, step: int) -> str:
    shown = {"field": _named(field), "step": step, "most": field.high}
    return _("%(field)s: the step %(step)d is not between 1 and %(most)d. For longer spans take an interval.") % shown


def _highest(field: Field) -> int:
    """As people may write it: Sunday is 0 and 7."""
    return 7 if field is WEEKDAY else field.high


def _named(field: Field) -> str:
    name = str(field.name)
    return name[:1].upper() + name[1:]


def _bad(sentence: str) -> BadRule:
    return BadRule("expression", sentence)
