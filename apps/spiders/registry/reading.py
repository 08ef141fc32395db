"""Reads `spider_registry.json`: what can be registered, and every fault with file, line and reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from django.utils.translation import gettext as _

from apps.core.json_text import BadJson, Positions, parse_json
from apps.core.json_text import Path as Place
from apps.spiders.models import Spider
from apps.spiders.registry.values import (
    Wrong,
    check_object,
    checked_exit_codes,
    checked_key,
    checked_limits,
    checked_line,
    checked_name,
    checked_texts,
    checked_version,
    command_of,
    one_of,
    schema_faults,
)

FILE_NAME = "spider_registry.json"
MAX_REGISTRY_BYTES = 1024 * 1024
MAX_REQUIREMENTS_BYTES = 256 * 1024
MAX_SPIDERS = 500
_MAX_DEPTH = 100
_NEEDED = ("name", "path", "kind", "entry", "version")
_OPTIONAL = ("author", "title", "description", "parameter_schema", "item_schema", "unique_key", "limits", "exit_codes")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Fault:
    file: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}" if self.line else f"{self.file}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One spider of the registry, checked."""

    name: str
    line: int
    folder: Path
    kind: str
    command: list[str]
    version: str
    author: str
    titles: dict[str, str]
    descriptions: dict[str, str]
    requirements: str
    parameter_schema: dict[str, Any]
    item_schema: dict[str, Any] | None
    unique_key: list[str]
    limits: dict[str, float]
    exit_codes: dict[str, dict[str, Any]]


@dataclass(slots=True)
class Reading:
    """`entries` can be registered although there are `faults`; without `project` nothing can."""

    file: Path
    project: str = ""
    project_name: str = ""
    entries: list[Entry] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def read_registry(folder: Path) -> Reading:
    file = folder / FILE_NAME
    reading = Reading(file)
    try:
        text = _text(file, MAX_REGISTRY_BYTES)
        registry = parse_json(text, max_bytes=MAX_REGISTRY_BYTES, max_depth=_MAX_DEPTH)
    except BadJson as error:
        reading.faults.append(Fault(file, error.line, error.reason))
        return reading
    _Reader(folder.resolve(), registry, Positions(text, max_depth=_MAX_DEPTH), reading).read()
    return reading


def _text(file: Path, limit: int) -> str:
    """A file's text; whatever is wrong with the file is told as bad JSON would be."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadJson(_("it cannot be read: %(why)s") % {"why": error.strerror}) from error
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise BadJson(_("this is not a file"))
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise BadJson(_("more than %(kib)d KiB") % {"kib": limit // 1024})
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(_("this is not UTF-8"), content.count(b"\n", 0, error.start) + 1, 1) from error


class _Reader:
    def __init__(self, root: Path, registry: Any, positions: Positions, reading: Reading) -> None:
        self._root, self._registry, self._positions, self._reading = root, registry, positions, reading
        self._names: set[str] = set()

    def read(self) -> None:
        try:
            check_object(self._registry, (), needed=("project", "spiders"))
            self._project(self._registry["project"])
            spiders = self._spiders(self._registry["spiders"])
        except Wrong as wrong:
            self._reading.faults.append(self._fault(wrong))
            return
        for index, raw in enumerate(spiders):
            self._reading.faults.extend(map(self._fault, self._entry_faults(raw, ("spiders", index))))

    def _fault(self, wrong: Wrong) -> Fault:
        return Fault(self._reading.file, self._positions.line(wrong.place), wrong.reason)

    def _project(self, raw: Any) -> None:
        check_object(raw, ("project",), needed=("slug", "name"))
        self._reading.project = checked_name(raw["slug"], ("project", "slug"))
        self._reading.project_name = checked_texts(raw["name"], ("project", "name"), 200)["en"]

    def _spiders(self, raw: Any) -> list[Any]:
        if not isinstance(raw, list) or not 0 < len(raw) <= MAX_SPIDERS:
            raise Wrong(("spiders",), _("“spiders” is a list of 1 to %(limit)d spiders") % {"limit": MAX_SPIDERS})
        return raw

    def _entry_faults(self, raw: Any, place: Place) -> Iterator[Wrong]:
        """Reads one spider; it is taken when there is no fault."""
        try:
            check_object(raw, place, needed=_NEEDED, also=_OPTIONAL)
        except Wrong as wrong:
            yield wrong
            return
        values, faults = self._plain_values(raw, place)
        if "folder" in values and "kind" in values:
            try:
                values["command"] = command_of(values["kind"], raw["entry"], values["folder"], (*place, "entry"))
                values["requirements"] = self._requirements(values["folder"])
            except Wrong as wrong:
                faults.append(wrong)
        for key in ("parameter_schema", "item_schema"):
            values[key] = raw.get(key, _NO_PARAMETERS if key == "parameter_schema" else None)
            if values[key] is not None or key == "parameter_schema":
                faults.extend(schema_faults(values[key], (*place, key), for_items=key == "item_schema"))
        if not faults and values.get("requirements") is not None:
            self._reading.entries.append(Entry(line=self._positions.line(place), **values))
        yield from faults

    def _plain_values(self, raw: dict[str, Any], place: Place) -> tuple[dict[str, Any], list[Wrong]]:
        texts = {"title": 200, "description": 4000}
        readers: dict[str, Callable[[], Any]] = {
            "name": lambda: self._own_name(raw["name"], (*place, "name")),
            "folder": lambda: self._folder(raw["path"], (*place, "path")),
            "kind": lambda: one_of(raw["kind"], (*place, "kind"), Spider.Kind.values),
            "version": lambda: checked_version(raw["version"], (*place, "version")),
            "author": lambda: checked_line(raw.get("author", ""), (*place, "author"), 200),
            "unique_key": lambda: checked_key(raw.get("unique_key", []), (*place, "unique_key")),
            "limits": lambda: checked_limits(raw.get("limits", {}), (*place, "limits")),
            "exit_codes": lambda: checked_exit_codes(raw.get("exit_codes", {}), (*place, "exit_codes")),
        }
        for key, longest in texts.items():
            readers[key + "s"] = partial(checked_texts, raw[key], (*place, key), longest) if key in raw else dict
        values: dict[str, Any] = {}
        faults: list[Wrong] = []
        for key, read in readers.items():
            try:
                values[key] = read()
            except Wrong as wrong:
                faults.append(wrong)
        return values, faults

    def _own_name(self, raw: Any, place: Place) -> str:
        name = checked_name(raw, place)
        if name in self._names:
            raise Wrong(place, _("there is another spider named “%(name)s” above") % {"name": name})
        self._names.add(name)
        return name

    def _folder(self, raw: Any, place: Place) -> Path:
        path = checked_line(raw, place, 200)
        parts = PurePosixPath(path).parts
        if not path or path.startswith("/") or "\\" in path or ".." in parts:
            raise Wrong(place, _("“path” is a folder below the registry, without “..”"))
        found = self._root / path
        # A link on the way may lead out.
        if not found.is_dir():
            raise Wrong(place, _("there is no folder “%(path)s”") % {"path": path})
        if not found.resolve().is_relative_to(self._root):
            raise Wrong(place, _("“%(path)s” is a link that leads out of the registry's folder") % {"path": path})
        return found

    def _requirements(self, folder: Path) -> str | None:
        """The text of requirements.txt; None when it is faulty, which is told under its own name."""
        file = folder / "requirements.txt"
        if not file.exists() and not file.is_symlink():
            return ""
        try:
            text = _text(file, MAX_REQUIREMENTS_BYTES)
        except BadJson as error:
            self._reading.faults.append(Fault(file, error.line, error.reason))
            return None
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            self._reading.faults.append(Fault(file, line, _("it holds a NUL character")))
            return None
        return text
