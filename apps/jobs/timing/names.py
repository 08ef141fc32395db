"""Names of days and months, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from django.utils.dates import MONTHS
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

# Short lists are told in full.
MOST_NUMBERS = 8
# Not Django's: "每周一" is made of "周一", not of "星期一".
WEEKDAYS = (
    pgettext_lazy("every …", "Sunday"),
    pgettext_lazy("every …", "Monday"),
    pgettext_lazy("every …", "Tuesday"),
    pgettext_lazy("every …", "Wednesday"),
    pgettext_lazy("every …", "Thursday"),
    pgettext_lazy("every …", "Friday"),
    pgettext_lazy("every …", "Saturday"),
)


def listed(items: Sequence[str]) -> str:
    """Such as "Monday, Tuesday and Friday"."""
    *some, last = items
    return _("%(items)s and %(last)s") % {"items": in_a_row(some), "last": last} if some else last


def listed_numbers(items: Sequence[str]) -> str:
    """Such as "1, 2 and 5": in Chinese with blanks around the last word."""
    *some, last = items
    return _("%(numbers)s and %(last)s") % {"numbers": in_a_row(some), "last": last} if some else last


def in_a_row(items: Sequence[str]) -> str:
    """With commas only."""
    return reduce(lambda said, item: _("%(items)s, %(next)s") % {"items": said, "next": item}, items)


def numbers(values: Sequence[int]) -> str:
    """Ascending numbers; three and more in a row as a span, and of a long list only its beginning and its end."""
    parts: list[str] = []
    first = last = values[0]
    for value in (*values[1:], None):
        if value is not None and value == last + 1:
            last = value
            continue
        parts += _stretch(first, last)
        if value is not None:
            first = last = value
    if len(parts) > MOST_NUMBERS:
        return in_a_row((*parts[:3], "…", parts[-1]))
    return listed_numbers(parts)


def weekday_names(days: Sequence[int]) -> str:
    """The week begins on Monday."""
    return listed([str(WEEKDAYS[day]) for day in sorted(days, key=lambda day: (day - 1) % 7)])


def month_names(months: Sequence[int]) -> str:
    return listed([str(MONTHS[month]) for month in months])


def _stretch(first: int, last: int) -> list[str]:
    if last - first >= 2:
        return [_("%(first)s to %(last)s") % {"first": first, "last": last}]
    return [str(value) for value in range(first, last + 1)]
