"""What a job may say about trying again and about nodes, checked without looking at anything stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from apps.core.durations import format_duration, read_duration
from apps.core.errors import Invalid
from apps.runs.policies import CAUSES, LONGEST_DELAY_SECONDS, MOST_ATTEMPTS, Backoff, FailedItems, RetryPolicy

# Sentences by dotted field name.
Faults = dict[str, list[str]]

DAY = 86400
MOST_DELAYS = 100
LARGEST_FACTOR = 100.0
MOST_INFRASTRUCTURE = 100
LARGEST_CODE = 255
MOST_LABELS = 20
# As nodes may have them.
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")


def checked_span(value: Any, name: str, faults: Faults, *, least: int, most: int) -> int:
    """Seconds of a number or of a text such as "1h30m"; what cannot be taken is told as a fault of `name`."""
    try:
        seconds = read_duration(value)
    except Invalid as error:
        faults[name] = [error.message]
        return least
    if seconds < least:
        faults[name] = [_("This is at least %(span)s.") % {"span": format_duration(least)}]
    elif seconds > most:
        faults[name] = [_("This is at most %(span)s.") % {"span": format_duration(most)}]
    else:
        return seconds
    return least


def check_retry(given: Any) -> tuple[RetryPolicy, Faults]:
    """The policy, whole; what is not said has its default. Faults are named `retry.<name>`."""
    if isinstance(given, RetryPolicy):
        given = given.as_spec()
    if not isinstance(given, Mapping):
        return RetryPolicy(), {"retry": [_("Retries are an object with a value for each name.")]}
    faults: Faults = {}
    for name in given:
        if name not in _READERS:
            known = ", ".join(_READERS)
            faults[f"retry.{name}"] = [_("There is no such field. Known: %(known)s.") % {"known": known}]
    read = {name: read(given[name], f"retry.{name}", faults) for name, read in _READERS.items() if name in given}
    if faults:
        return RetryPolicy(), faults
    policy = RetryPolicy(**read)
    _check_together(policy, faults)
    return policy, faults


def _check_together(policy: RetryPolicy, faults: Faults) -> None:
    """What each value allows by itself, and all of them together do not."""
    if policy.backoff is Backoff.EXPONENTIAL and policy.cap_seconds < policy.delay_seconds:
        spans = {"cap": format_duration(policy.cap_seconds), "base": format_duration(policy.delay_seconds)}
        sentence = _("The longest pause, %(cap)s, is below the first one, %(base)s.")
        faults["retry.cap_seconds"] = [sentence % spans]
    if policy.backoff is Backoff.LIST and not policy.delays:
        faults["retry.delays"] = [_("Say the pauses, such as 30s, 5m, 1h.")]
    if policy.attempts > 1 and not policy.causes:
        faults["retry.causes"] = [_("Say what is tried again, or allow one attempt only.")]
    if both := sorted({*policy.codes} & {*policy.never_codes}):
        codes = ", ".join(map(str, both))
        faults["retry.never_codes"] = [_("Also among those that are tried again: %(codes)s.") % {"codes": codes}]


def check_selector(given: Any) -> tuple[dict[str, str], list[str]]:
    """Labels by name, and what is wrong with them."""
    if not isinstance(given, Mapping):
        return {}, [_("Labels are an object with a word for each name.")]
    if len(given) > MOST_LABELS:
        return {}, [_("At most %(n)d labels are allowed.") % {"n": MOST_LABELS}]
    wrong = [
        _("“%(name)s=%(value)s”: names and values are 1 to 63 letters, digits and any of . _ - / between them.")
        % {"name": str(name)[:64], "value": str(value)[:64]}
        for name, value in given.items()
        if not all(isinstance(part, str) and _LABEL.fullmatch(part) for part in (name, value))
    ]
    return ({}, wrong) if wrong else (dict(sorted(given.items())), [])


# -- how each value of a retry policy is read ---------------------------------------------------------------------


def _whole(least: int, most: int) -> Callable[[Any, str, Faults], int]:
    def read(value: Any, name: str, faults: Faults) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            faults[name] = [_("Enter a whole number.")]
        elif not least <= value <= most:
            faults[name] = [_("This is a number from %(least)d to %(most)d.") % {"least": least, "most": most}]
        else:
            return value
        return least

    return read


def _number(least: float, most: float) -> Callable[[Any, str, Faults], float]:
    def read(value: Any, name: str, faults: Faults) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            faults[name] = [_("Enter a number.")]
        elif not least <= value <= most:
            faults[name] = [_("This is a number from %(least)g to %(most)g.") % {"least": least, "most": most}]
        else:
            return float(value)
        return least

    return read


def _span(value: Any, name: str, faults: Faults) -> int:
    return checked_span(value, name, faults, least=0, most=LONGEST_DELAY_SECONDS)


def _word(kind: type[Backoff | FailedItems]) -> Callable[[Any, str, Faults], Any]:
    def read(value: Any, name: str, faults: Faults) -> Any:
        words = [str(each) for each in kind]
        if isinstance(value, str) and value in words:
            return kind(value)
        faults[name] = [_("Choose one of: %(choices)s.") % {"choices": ", ".join(words)}]
        return None

    return read


def _several(read_one: Callable[[Any, str, Faults], Any], most: int) -> Callable[[Any, str, Faults], tuple[Any, ...]]:
    def read(value: Any, name: str, faults: Faults) -> tuple[Any, ...]:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            faults[name] = [_("This is a list.")]
            return ()
        if len(value) > most:
            faults[name] = [_("At most %(n)d are allowed.") % {"n": most}]
            return ()
        return tuple(read_one(each, name, faults) for each in value)

    return read


def _cause(value: Any, name: str, faults: Faults) -> str:
    if value not in CAUSES:
        words = {"word": str(value)[:40], "known": ", ".join(CAUSES)}
        faults[name] = [_("“%(word)s” is no cause; known are: %(known)s.") % words]
    return str(value)


def _unique(read: Callable[[Any, str, Faults], tuple[Any, ...]]) -> Callable[[Any, str, Faults], tuple[Any, ...]]:
    return lambda value, name, faults: tuple(dict.fromkeys(read(value, name, faults)))


_CODES = _unique(_several(_whole(1, LARGEST_CODE), LARGEST_CODE))
_READERS: dict[str, Callable[[Any, str, Faults], Any]] = {
    "attempts": _whole(1, MOST_ATTEMPTS),
    "backoff": _word(Backoff),
    "delay_seconds": _span,
    "factor": _number(1.0, LARGEST_FACTOR),
    "cap_seconds": _span,
    "delays": _several(_span, MOST_DELAYS),
    "jitter": _number(0.0, 1.0),
    "causes": _unique(_several(_cause, 20)),
    "codes": _CODES,
    "never_codes": _CODES,
    "infrastructure": _whole(0, MOST_INFRASTRUCTURE),
    "items": _word(FailedItems),
}
