"""The values of a registry entry: each check gives the value or says what is wrong with it, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from apps.core.json_text import Path as Place
from apps.core.schema_forms import check_schema
from apps.spiders.models import Spider, name_validator

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}\Z")
_PYTHON_ENTRY = re.compile(r"(?P<file>[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}\.py)(?::[A-Za-z_][A-Za-z0-9_]{0,99})?\Z")
_SCRAPY_ENTRY = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_. -]{0,199}\Z")
# Lowest and highest; the same bounds as a job's own.
_LIMITS: dict[str, tuple[float, float, type]] = {
    "memory_mb": (32, 1024 * 1024, int),
    "cpus": (0.05, 256, float),
    "timeout_seconds": (1, 30 * 86400, int),
    "grace_seconds": (0, 600, int),
    "pids": (1, 32768, int),
    "tmp_mb": (1, 1024 * 1024, int),
}
_LANGUAGES = ("en", "zh-hans")
_EXIT_CODE = re.compile(r"[1-9][0-9]{0,2}\Z")
_LAST_EXIT_CODE = 255
_MOST_EXIT_CODES = 50
# Killed, stopped, more output than allowed: a spider cannot give these a meaning of its own.
_OURS = (137, 143, 153)


class Wrong(Exception):
    """A value of the registry that cannot be taken; `place` leads to it."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place, self.reason = place, reason


def check_object(raw: Any, place: Place, *, needed: tuple[str, ...], also: tuple[str, ...] = ()) -> None:
    if not isinstance(raw, dict):
        raise Wrong(place, _("this must be an object"))
    for key in needed:
        if key not in raw:
            raise Wrong(place, _("“%(key)s” is missing") % {"key": key})
    for key in raw:
        if key not in needed and key not in also:
            raise Wrong((*place, key), _("the key “%(key)s” is not known") % {"key": _short(key)})


def _short(text: str) -> str:
    """A word of the file in a sentence that goes to a terminal."""
    return ascii(text[:60])[1:-1] if not text.isprintable() else text[:60]


def checked_name(raw: Any, place: Place) -> str:
    try:
        name_validator(raw if isinstance(raw, str) and not raw.endswith("\n") else "")
    except ValidationError as error:
        raise Wrong(place, " ".join(error.messages)) from error
    return str(raw)


def checked_line(raw: Any, place: Place, longest: int) -> str:
    if not isinstance(raw, str) or len(raw) > longest or not (raw == "" or raw.isprintable()):
        raise Wrong(place, _("this must be a text of at most %(limit)d printable characters") % {"limit": longest})
    return raw


def checked_texts(raw: Any, place: Place, longest: int) -> dict[str, str]:
    """A text in English, or by language with English among them."""
    texts = {"en": raw} if isinstance(raw, str) else raw
    if not isinstance(texts, dict) or "en" not in texts or any(key not in _LANGUAGES for key in texts):
        raise Wrong(place, _("this must be a text, or an object with “en” and “zh-hans”"))
    for language, text in texts.items():
        checked_line(text.replace("\n", " ") if isinstance(text, str) else text, (*place, language), longest)
    if not texts["en"]:
        raise Wrong(place, _("this must not be empty"))
    return dict(texts)


def one_of(raw: Any, place: Place, choices: list[str]) -> str:
    if not isinstance(raw, str) or raw not in choices:
        raise Wrong(place, _("this must be one of: %(choices)s") % {"choices": ", ".join(choices)})
    return raw


def checked_version(raw: Any, place: Place) -> str:
    if not isinstance(raw, str) or not _VERSION.match(raw):
        raise Wrong(place, _("use 1 to 64 of letters, digits and . + _ -, beginning with a letter or digit"))
    return raw


def checked_key(raw: Any, place: Place) -> list[str]:
    if not isinstance(raw, list) or len(raw) > 10 or len(set(map(str, raw))) < len(raw):
        raise Wrong(place, _("this must be a list of at most 10 different field names"))
    for index, name in enumerate(raw):
        if not checked_line(name, (*place, index), 200):
            raise Wrong((*place, index), _("this must not be empty"))
    return list(raw)


def checked_limits(raw: Any, place: Place) -> dict[str, float]:
    check_object(raw, place, needed=(), also=tuple(_LIMITS))
    for key, value in raw.items():
        low, high, kind = _LIMITS[key]
        fits = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        if not fits or not low <= value <= high:
            bounds = {"key": key, "low": f"{low:g}", "high": f"{high:g}"}
            raise Wrong((*place, key), _("“%(key)s” is a number from %(low)s to %(high)s") % bounds)
    return dict(raw)


def checked_exit_codes(raw: Any, place: Place) -> dict[str, dict[str, Any]]:
    """What the spider's own exit codes mean, by code: each with a text, and whether it counts as a success."""
    if not isinstance(raw, dict) or len(raw) > _MOST_EXIT_CODES:
        raise Wrong(place, _("this must be an object with at most %(limit)d exit codes") % {"limit": _MOST_EXIT_CODES})
    known = {}
    for code, entry in raw.items():
        here = (*place, code)
        if not _EXIT_CODE.match(code) or int(code) > _LAST_EXIT_CODE:
            raise Wrong(here, _("an exit code is a number from 1 to 255; 0 is always a success"))
        if int(code) in _OURS:
            raise Wrong(here, _("exit code %(code)s is how a run that is killed or stopped ends") % {"code": code})
        check_object(entry, here, needed=("meaning",), also=("success",))
        success = entry.get("success", False)
        if not isinstance(success, bool):
            raise Wrong((*here, "success"), _("this must be true or false"))
        known[code] = {"success": success, "meaning": checked_texts(entry["meaning"], (*here, "meaning"), 200)}
    return known


def command_of(kind: str, raw: Any, folder: Path, place: Place) -> list[str]:
    if kind == Spider.Kind.COMMAND:
        return _arguments(raw, place)
    if kind == Spider.Kind.SCRAPY:
        if not isinstance(raw, str) or not _SCRAPY_ENTRY.match(raw):
            raise Wrong(place, _("“entry” is the name of the spider in the Scrapy project"))
        if not (folder / "scrapy.cfg").is_file():
            raise Wrong(place, _("there is no scrapy.cfg in the folder of the spider"))
        return ["python3", "-m", "clawspider", "scrapy", raw]
    match = _PYTHON_ENTRY.match(raw) if isinstance(raw, str) else None
    if match is None or any(part in ("", ".", "..") for part in match["file"].split("/")):
        raise Wrong(place, _("“entry” is file.py or file.py:ClassName"))
    if not (folder / match["file"]).is_file():
        raise Wrong(place, _("there is no file “%(file)s” in the folder of the spider") % {"file": match["file"]})
    return ["python3", "-m", "clawspider", "run", raw]


def _arguments(raw: Any, place: Place) -> list[str]:
    if not isinstance(raw, list) or not 0 < len(raw) <= 100:
        raise Wrong(place, _("“entry” is the command as a list of 1 to 100 texts"))
    for index, argument in enumerate(raw):
        odd = not isinstance(argument, str) or len(argument) > 4096 or "\0" in argument
        if odd or any("\ud800" <= letter <= "\udfff" for letter in argument) or (index == 0 and not argument.strip()):
            raise Wrong((*place, index), _("this argument cannot be passed to a program"))
    return list(raw)


def schema_faults(schema: Any, place: Place, *, for_items: bool) -> Iterator[Wrong]:
    for fault in check_schema(schema, for_items=for_items):
        yield Wrong((*place, *fault.path), fault.message)
