"""Registering spiders."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from apps.core.schema_forms import with_order
from apps.spiders.archive import BadFolder, pack
from apps.spiders.models import CodeArchive, Project, Spider, Version
from apps.spiders.registry import FILE_NAME, Entry, Fault, read_registry

# Two syncs at once would race for the same names; any fixed number that nothing else of ours uses.
_SYNC_LOCK = 0x636C6177


@dataclass(slots=True)
class SyncReport:
    """Names of spiders; a spider with faults is in none of the lists."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults


def sync_registry(*, folder: Path, now: datetime) -> SyncReport:
    """Register what is valid in a folder with a registry, each spider by itself; faults are in the report."""
    reading = read_registry(folder)
    report = SyncReport(faults=reading.faults)
    for entry in reading.entries:
        try:
            leave_out = (FILE_NAME,) if entry.folder == folder.resolve() else ()
            digest, content = pack(entry.folder, leave_out=leave_out)
        except BadFolder as error:
            report.faults.append(
                Fault(folder / entry.folder.relative_to(folder.resolve()) / error.path, 0, error.reason)
            )
            continue
        outcome = _register(entry, reading.project, reading.project_name, digest, content, now)
        if outcome:
            getattr(report, outcome).append(entry.name)
        else:
            reason = _("the name “%(name)s” belongs to a spider of another project") % {"name": entry.name}
            report.faults.append(Fault(reading.file, entry.line, reason))
    return report


@transaction.atomic
def _register(entry: Entry, slug: str, project_name: str, code: str, content: bytes, now: datetime) -> str:
    """The list of the report the spider goes into; "" when its name is taken elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SYNC_LOCK])
    project, _new = Project.objects.get_or_create(slug=slug, defaults={"name": project_name, "created_at": now})
    spider = Spider.objects.select_for_update().filter(name=entry.name).first()
    if spider is not None and spider.project_id != project.pk:
        return ""
    created = spider is None
    if spider is None:
        spider = Spider(name=entry.name, project=project, created_at=now)
    facts = {
        "kind": entry.kind,
        "titles": entry.titles,
        "descriptions": entry.descriptions,
        "author": entry.author,
    }
    changed = created or any(getattr(spider, name) != value for name, value in facts.items())
    if changed:
        _save(spider, facts, now)
    version, _new = _version(spider, entry, code, content, now)
    if spider.current_version_id != version.pk:
        _save(spider, {"current_version": version}, now)
        changed = True
    return "created" if created else "updated" if changed else "unchanged"


def _save(spider: Spider, values: dict[str, Any], now: datetime) -> None:
    for name, value in values.items():
        setattr(spider, name, value)
    spider.updated_at = now
    spider.save()


def _version(spider: Spider, entry: Entry, code: str, content: bytes, now: datetime) -> tuple[Version, bool]:
    """The version with exactly this content: an earlier one comes back, new content makes a new one."""
    parts: dict[str, Any] = {
        "name": entry.version,
        "command": entry.command,
        "requirements": entry.requirements,
        "parameter_schema": with_order(entry.parameter_schema),
        "item_schema": with_order(entry.item_schema),
        "unique_key": entry.unique_key,
        "default_limits": entry.limits,
    }
    if entry.exit_codes:  # only then: versions without are known by what made their digest before
        parts["exit_codes"] = entry.exit_codes
    text = json.dumps({"code": code, **parts}, sort_keys=True, ensure_ascii=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = spider.versions.filter(digest=digest).first()
    if found is not None:
        return found, False
    CodeArchive.objects.get_or_create(digest=code, defaults={"content": content, "created_at": now})
    return Version.objects.create(spider=spider, digest=digest, code_id=code, created_at=now, **parts), True
