"""Where runs may start: nodes, pools and the maintenance of the whole panel. Who changed what is kept in the log of
changes that the admin shows too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.models import ADDITION, DELETION
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.core.actors import Actor
from apps.core.background import enqueue
from apps.core.changes import note_change
from apps.core.errors import Conflict, Invalid, NotFound
from apps.runs.models import Node, Placement, Pool

LONGEST_DRAIN = timedelta(days=7)
MOST_LABELS = 32
LARGEST_POOL = 10_000
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?")


class PoolInUse(Conflict):
    """Jobs would lose their limit without anybody having said so."""

    code = "pool_in_use"


# -- nodes --------------------------------------------------------------------------------------------------------


def _locked(node: Node) -> Node:
    found = Node.objects.select_for_update(no_key=True).filter(pk=node.pk).first()
    if found is None:
        raise NotFound(_("There is no such node."))
    return found


@transaction.atomic
def cordon(*, node: Node, by: Actor, now: datetime) -> None:
    """Start nothing new there; what runs goes on. Twice is once."""
    own = _locked(node)
    if own.cordoned_at is None:
        Node.objects.filter(pk=own.pk).update(cordoned_at=now)
        note_change(own, by, "cordoned")
    node.refresh_from_db()


@transaction.atomic
def uncordon(*, node: Node, by: Actor, now: datetime) -> None:
    """Open it again; a drain that goes on is over."""
    own = _locked(node)
    if own.cordoned_at is not None or own.drain_until is not None:
        Node.objects.filter(pk=own.pk).update(cordoned_at=None, drain_until=None)
        note_change(own, by, "uncordoned")
        enqueue("runs.wake")
    node.refresh_from_db()


@transaction.atomic
def drain(*, node: Node, by: Actor, now: datetime, within: timedelta) -> None:
    """Start nothing new there; what still runs `within` this time is stopped and tried again elsewhere."""
    if not timedelta(0) <= within <= LONGEST_DRAIN:
        sentence = _("Enter a time from 0 s to 7 days.")
        raise Invalid(sentence, fields={"within": [sentence]})
    own, until = _locked(node), now + within
    Node.objects.filter(pk=own.pk).update(cordoned_at=own.cordoned_at or now, drain_until=until)
    note_change(own, by, f"drain: {until.isoformat(timespec='seconds')}")
    enqueue("runs.wake")
    node.refresh_from_db()


@transaction.atomic
def end_drain(*, node: Node, by: Actor, now: datetime) -> None:
    """What runs there goes on for as long as it takes; the node stays closed for new runs."""
    own = _locked(node)
    if own.drain_until is not None:
        Node.objects.filter(pk=own.pk).update(drain_until=None)
        note_change(own, by, "drain_ended")
    node.refresh_from_db()


@transaction.atomic
def set_labels(*, node: Node, by: Actor, now: datetime, labels: Mapping[str, str]) -> None:
    """What selectors of jobs are compared with, all of them at once."""
    checked = check_labels(labels)
    own = _locked(node)
    if own.labels != checked:
        Node.objects.filter(pk=own.pk).update(labels=checked)
        note_change(own, by, "labels: " + ", ".join(f"{name}={value}" for name, value in checked.items()))
        enqueue("runs.wake")
    node.refresh_from_db()


def check_labels(labels: Any) -> dict[str, str]:
    """Names and values are short words, so that they can stand in an environment variable and in an address."""
    if not isinstance(labels, Mapping):
        sentence = _("Labels are an object with a word for each name.")
        raise Invalid(sentence, fields={"labels": [sentence]})
    said = [
        _("“%(name)s=%(value)s”: names and values are 1 to 63 letters, digits and any of . _ - / between them.")
        % {"name": name, "value": value}
        for name, value in labels.items()
        if not all(isinstance(part, str) and _LABEL.fullmatch(part) for part in (name, value))
    ]
    if len(labels) > MOST_LABELS:
        said.append(_("A node has at most %(n)d labels.") % {"n": MOST_LABELS})
    if said:
        raise Invalid(said[0], fields={"labels": said[:10]})
    return dict(sorted(labels.items()))


# -- maintenance --------------------------------------------------------------------------------------------------


def _placement() -> Placement:
    """Locked, as by everybody who takes runs from the queue: nothing starts while this changes."""
    return Placement.objects.select_for_update().get_or_create(pk=1)[0]


@transaction.atomic
def begin_maintenance(*, by: Actor, now: datetime, why: str) -> None:
    """Nothing new starts anywhere. Said again it changes the reason only."""
    why = why.strip()
    if not why or len(why) > 200 or not why.isprintable():
        sentence = _("Say why in 1 to 200 printable characters: everybody reads it.")
        raise Invalid(sentence, fields={"why": [sentence]})
    own = _placement()
    Placement.objects.filter(pk=own.pk).update(
        maintenance_since=own.maintenance_since or now, maintenance_by=str(by)[:200], maintenance_why=why
    )
    note_change(own, by, f"maintenance: {why}")


@transaction.atomic
def end_maintenance(*, by: Actor, now: datetime) -> None:
    own = _placement()
    if own.maintenance_since is not None:
        Placement.objects.filter(pk=own.pk).update(maintenance_since=None, maintenance_by="", maintenance_why="")
        note_change(own, by, "maintenance_ended")
        enqueue("runs.wake")


@transaction.atomic
def set_max_running(*, by: Actor, now: datetime, most: int | None) -> None:
    """The most runs at once on all nodes together; None is no such limit."""
    if most is not None and most < 1:
        sentence = _("The limit is a whole number from 1 on, or empty.")
        raise Invalid(sentence, fields={"max_running": [sentence]})
    own = _placement()
    if own.max_running != most:
        Placement.objects.filter(pk=own.pk).update(max_running=most)
        note_change(own, by, f"max_running: {most or '-'}")
        enqueue("runs.wake")


# -- pools --------------------------------------------------------------------------------------------------------


@transaction.atomic
def create_pool(*, by: Actor, now: datetime, name: str, limit: int, description: str = "") -> Pool:
    pool = Pool(**_checked_pool(None, name=name, limit=limit, description=description))
    pool.save(force_insert=True)
    note_change(pool, by, "created", ADDITION)
    return pool


@transaction.atomic
def update_pool(*, pool: Pool, by: Actor, now: datetime, **changes: Any) -> Pool:
    """Change any of name, limit and description. What runs beyond a lower limit goes on; nothing new starts."""
    own = _locked_pool(pool)
    before = {"name": own.name, "limit": own.limit, "description": own.description}
    values = _checked_pool(own, **{**before, **changes})
    if values != before:
        Pool.objects.filter(pk=own.pk).update(**values)
        note_change(own, by, f"changed: {values['limit']}")
        enqueue("runs.wake")
    own.refresh_from_db()
    return own


@transaction.atomic
def delete_pool(*, pool: Pool, by: Actor, now: datetime, detach: bool = False) -> None:
    """Jobs that use it refuse this, unless they are to be taken out of it."""
    own = _locked_pool(pool)
    jobs = own.jobs.count()
    if jobs and not detach:
        raise PoolInUse(
            ngettext(
                "%(n)d job uses the pool “%(name)s”: change it first, or say that it shall run without.",
                "%(n)d jobs use the pool “%(name)s”: change them first, or say that they shall run without.",
                jobs,
            )
            % {"n": jobs, "name": own.name}
        )
    note_change(own, by, "deleted", DELETION)
    own.delete()
    enqueue("runs.wake")


def _locked_pool(pool: Pool) -> Pool:
    found = Pool.objects.select_for_update().filter(pk=pool.pk).first()
    if found is None:
        raise NotFound(_("There is no such pool."))
    return found


def _checked_pool(own: Pool | None, *, name: Any, limit: Any, description: Any) -> dict[str, Any]:
    faults: dict[str, list[str]] = {}
    name, description = _text(name), _text(description)
    if not 0 < len(name) <= 64 or not name.isprintable() or "," in name:
        faults["name"] = [_("A pool's name has 1 to 64 printable characters and no comma.")]
    elif Pool.objects.filter(name=name).exclude(pk=own.pk if own else 0).exists():
        faults["name"] = [_("There is a pool of this name already.")]
    if len(description) > 200 or not description.isprintable():
        faults["description"] = [_("A description has at most 200 printable characters.")]
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST_POOL:
        faults["limit"] = [_("The limit is a whole number from 1 to 10,000.")]
    if faults:
        raise Invalid(next(iter(faults.values()))[0], fields=faults)
    return {"name": name, "limit": limit, "description": description}


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
