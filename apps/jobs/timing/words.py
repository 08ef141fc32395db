"""Rules in words, in the language of the reader."""

from __future__ import annotations

from cron_descriptor import CasingTypeEnum, ExpressionDescriptor, Options
from django.utils.translation import get_language, to_locale
from django.utils.translation import gettext as _

from apps.jobs.timing.cron_text import DAY, HOUR, MINUTE, MONTH, WEEKDAY, Field, values_of
from apps.jobs.timing.names import in_a_row, listed_numbers, month_names, numbers, weekday_names
from apps.jobs.timing.rules import Cron, Interval, Once, Rule
from apps.jobs.timing.spans import span

MOST_CLOCK_TIMES = 6
HOURS_IN_A_ROW = 4
WORKDAYS = [1, 2, 3, 4, 5]


def words(rule: Rule) -> str:
    """Such as "every weekday at 09:30"; without a zone and without a full stop."""
    match rule:
        case Cron():
            return _cron(rule.expression)
        case Interval():
            return _interval(rule.every_seconds)
        case Once():
            local = rule.once_at.astimezone(rule.zone)
            time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
            return _("once on %(date)s at %(time)s") % {"date": local.date().isoformat(), "time": time}
    return ""


def _interval(seconds: int) -> str:
    units = {
        1: _("every second"),
        60: _("every minute"),
        3600: _("every hour"),
        86400: _("every day"),
        7 * 86400: _("every week"),
    }
    return units.get(seconds) or _("every %(span)s") % {"span": span(seconds)}


def _cron(expression: str) -> str:
    minute, hour, day, month, weekday = expression.split()
    days = _days(day, month, weekday)
    minutes, hours = values_of(minute, MINUTE), values_of(hour, HOUR)
    in_a_row = len(hours) >= HOURS_IN_A_ROW and _ends(hours)[0] is not None
    if len(minutes) * len(hours) <= MOST_CLOCK_TIMES and not in_a_row:
        times = listed_numbers([_clock(h, m) for h in hours for m in minutes])
        return _("%(days)s at %(times)s") % {"days": days, "times": times}
    times = _rhythm(minute, minutes, hour, hours) or _described(minute, hour)
    if (day, month, weekday) == ("*", "*", "*"):
        return times
    return _("%(rhythm)s, %(days)s") % {"rhythm": times, "days": days}


# -- which days -------------------------------------------------------------------------------------------------------


def _days(day: str, month: str, weekday: str) -> str:
    months = "" if month == "*" else month_names(values_of(month, MONTH))
    if weekday == "*":
        return _month_days(day, months)
    if day == "*":
        return _in_months(_weekdays(weekday), months)
    shown = {"days": numbers(values_of(day, DAY)), "weekdays": _weekdays(weekday)}
    # As cron has it: a star in one of the fields, and both must match.
    if day.startswith("*") or weekday.startswith("*"):
        both = _("%(weekdays)s that falls on one of the days %(days)s of the month")
        return _in_months(both % shown, months)
    return _in_months(_("on day %(days)s of the month and also %(weekdays)s") % shown, months)


def _month_days(day: str, months: str) -> str:
    if day == "*":
        return _in_months(_("every day"), months)
    shown = {"days": numbers(values_of(day, DAY)), "months": months}
    if not months:
        return _("on day %(days)s of each month") % shown
    return _("on day %(days)s of %(months)s") % shown


def _weekdays(weekday: str) -> str:
    days = values_of(weekday, WEEKDAY)
    if len(days) == WEEKDAY.size:
        return _("every day")
    if days == WORKDAYS:
        return _("every weekday")
    return _("every %(weekdays)s") % {"weekdays": weekday_names(days)}


def _in_months(days: str, months: str) -> str:
    return _("%(days)s in %(months)s") % {"days": days, "months": months} if months else days


# -- how often on such a day ------------------------------------------------------------------------------------------


def _rhythm(minute: str, minutes: list[int], hour: str, hours: list[int]) -> str:
    """Many times a day; empty where the pattern is too odd for a phrase of its own."""
    often = _often(minute, minutes)
    if len(hours) == HOUR.size:
        return often or _hourly(minutes)
    begin, end = _ends(hours)
    if begin is not None and end is not None:
        if len(minutes) == 1:
            often = _("every hour")
        shown = {"often": often, "begin": _clock(begin, minutes[0]), "end": _clock(end, minutes[-1])}
        return _("%(often)s from %(begin)s to %(end)s") % shown if often else ""
    step = _step(hour, HOUR.size)
    if step and len(minutes) == 1:
        shown_step = {"n": step, "minute": minutes[0]}
        return (
            _("every %(n)d hours at minute %(minute)d") % shown_step
            if minutes[0]
            else _("every %(n)d hours on the hour") % shown_step
        )
    return ""


def _often(minute: str, minutes: list[int]) -> str:
    if minute == "*":
        return _("every minute")
    if step := _step(minute, MINUTE.size):
        return _("every %(n)d minutes") % {"n": step}
    span_text, _slash, step_text = minute.partition("/")
    if not step_text.isdecimal() or "," in minute:
        return ""
    # In every hour anew: 4 minutes lie between the last of */7 and the next hour.
    if span_text == "*" or (span_text.endswith("-59") and minutes[0] < int(step_text)):
        return _("every %(n)d minutes from minute %(minute)d of each hour") % {
            "n": int(step_text),
            "minute": minutes[0],
        }
    return ""


def _hourly(minutes: list[int]) -> str:
    if minutes == [0]:
        return _("every hour on the hour")
    if len(minutes) == 1:
        return _("every hour at minute %(minute)d") % {"minute": minutes[0]}
    return _("every hour at the minutes %(minutes)s") % {"minutes": numbers(minutes)}


def _step(text: str, size: int) -> int:
    """Of `*/n` that fills an hour or a day evenly; otherwise 0."""
    star, _slash, step = text.partition("/")
    return int(step) if star == "*" and step.isdecimal() and size % int(step) == 0 else 0


def _ends(hours: list[int]) -> tuple[int | None, int | None]:
    """First and last of hours in a row, over midnight too."""
    begins = [hour for hour in hours if (hour - 1) % HOUR.size not in hours]
    ends = [hour for hour in hours if (hour + 1) % HOUR.size not in hours]
    return (begins[0], ends[0]) if len(begins) == 1 else (None, None)


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02}:{minute:02}"


def _described(minute: str, hour: str) -> str:
    """By cron-descriptor. Not the days: it has no Chinese weekdays, and takes "or" for "and"."""
    options = Options()
    language = get_language() or "en"
    options.locale_code = "zh_CN" if language.startswith("zh") else to_locale(language)
    options.use_24hour_time_format = True
    options.casing_type = CasingTypeEnum.LowerCase
    expression = f"{_simple(minute, MINUTE)} {_simple(hour, HOUR)} * * *"
    text: str = ExpressionDescriptor(expression, options).get_description()
    return in_a_row(text.split(", "))


def _simple(text: str, field: Field) -> str:
    """A list with steps in it is more than cron-descriptor understands: its values, then."""
    return ",".join(map(str, values_of(text, field))) if "," in text and "/" in text else text
