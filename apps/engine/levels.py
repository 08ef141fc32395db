"""From spool bytes to numbered-to-be log lines: text and level."""

from __future__ import annotations

import re
from enum import IntEnum


class Level(IntEnum):
    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40
    CRITICAL = 50


_NAMES = {
    "TRACE": Level.DEBUG,
    "VERBOSE": Level.DEBUG,
    "DEBUG": Level.DEBUG,
    "DBG": Level.DEBUG,
    "INFO": Level.INFO,
    "INFORMATION": Level.INFO,
    "NOTICE": Level.INFO,
    "SUCCESS": Level.INFO,
    "WARNING": Level.WARNING,
    "WARN": Level.WARNING,
    "ERROR": Level.ERROR,
    "ERR": Level.ERROR,
    "SEVERE": Level.ERROR,
    "CRITICAL": Level.CRITICAL,
    "CRIT": Level.CRITICAL,
    "FATAL": Level.CRITICAL,
    "PANIC": Level.CRITICAL,
    "ALERT": Level.CRITICAL,
    "EMERGENCY": Level.CRITICAL,
    "EMERG": Level.CRITICAL,
}
_UPPER = "|".join(sorted(_NAMES, key=len, reverse=True))
_EITHER = "|".join((_UPPER, _UPPER.lower(), _UPPER.title()))

# Anchored, and each part bounded: a hostile line must not make the match slow.
_HEAD = re.compile(
    rf"""(?:\x1b\[[\d;]{{0,16}}m){{0,2}}
    (?:
      # 2026-03-08 01:59:59,999 [scrapy.core.engine] INFO: …   2026-03-08T01:59:59Z | ERROR | …   … - name - ERROR - …
      \[?\d{{4}}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d[^\s\]]{{0,20}}\]?\s{{1,4}}(?:[-|]\s)?
      (?:\[[^\]]{{0,100}}\]:?\s{{1,4}}|[\w.$/-]{{1,100}}(?:\s{{0,20}}[-|:])?\s{{1,4}}){{0,2}}
      (?:(?P<dated>{_UPPER})\b|\[(?P<boxed>{_EITHER})\s{{0,9}}\])
    | \[\s?(?P<bracket>{_EITHER})\s{{0,4}}\]
    | (?P<upper>{_UPPER})(?=[:\s|\]\x1b]|$)
    | (?P<lower>{_UPPER.lower()}):\s
    )""",
    re.VERBOSE,
)
_PAIR = re.compile(rf"""(?:^|[\s{{,])"?(?:level|levelname|lvl|severity|log_level)"?\s?[=:]\s?"?({_EITHER})\b""")
_PAIR_REACH = 400

# What a line may begin with when it says its level at its head; most plain lines stop here.
_MAYBE_HEAD = frozenset(
    "0123456789[\x1b" + "".join({name[0] for name in _NAMES}) + "".join({n[0] for n in _NAMES}).lower()
)

_TRACEBACK = "Traceback (most recent call last):"
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_MESSAGE_LINES = 3  # an exception's message may have several lines; further plain lines belong to the spider again


def level_of(line: str) -> Level | None:
    """What the line says of itself, or None for plain text."""
    if line[:1] in _MAYBE_HEAD:
        found = _HEAD.match(line)
        if found:
            return _NAMES[found[found.lastgroup or 0].upper()]
    if ("=" in line or line[:1] == "{") and ("lev" in line or "lvl" in line or "sever" in line):
        pair = _PAIR.search(line, 0, _PAIR_REACH)
        if pair:
            return _NAMES[pair[1].upper()]
    return None


def to_text(data: bytes) -> str:
    """Bad UTF-8 as replacement characters, NUL (which PostgreSQL refuses) as a visible symbol, CR kept."""
    text = data.decode("utf-8", "replace")
    return text.replace("\0", "␀") if "\0" in text else text


class Leveler:
    """Gives each line its level. `state` is all it remembers between windows: 0 outside of a traceback."""

    # 0 outside; 1 in the frames; 2.. after the exception line, counting lines of its message; BLANK after those
    _FRAMES, _AFTER, _BLANK = 1, 2, 99

    def __init__(self, state: int = 0) -> None:
        self.state = state

    def lines(self, data: bytes) -> list[tuple[str, Level]]:
        """`data` as `read_window` gives it: whole lines, each ending in a newline."""
        return self.text_lines(to_text(data))

    def text_lines(self, text: str) -> list[tuple[str, Level]]:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        if self.state == 0 and _TRACEBACK not in text:
            info = Level.INFO
            return [(line, level_of(line) or info) for line in lines]
        return [(line, self._level(line)) for line in lines]

    def _level(self, line: str) -> Level:
        if _TRACEBACK in line:
            self.state = self._FRAMES
            return max(level_of(line) or Level.ERROR, Level.ERROR)
        if self.state == 0:
            return level_of(line) or Level.INFO
        if line.startswith(_CHAIN):
            self.state = self._FRAMES
            return Level.ERROR
        if not line.strip():
            self.state = self._FRAMES if self.state == self._FRAMES else self._BLANK
            return Level.ERROR
        if line[0] in " \t|+" and self.state != self._BLANK:
            return Level.ERROR
        return self._unindented(line)

    def _unindented(self, line: str) -> Level:
        own = level_of(line)
        if own is not None or self.state == self._BLANK:
            self.state = 0
            return own or Level.INFO
        if self.state == self._FRAMES:  # "ValueError: two"
            self.state = self._AFTER
            return Level.ERROR
        self.state += 1
        if self.state > self._AFTER + _MESSAGE_LINES:
            self.state = 0
            return Level.INFO
        return Level.ERROR
