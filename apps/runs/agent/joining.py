"""A machine joins: whose name it takes, and what its own variable says of its labels."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models.functions import Now

from apps.core.actors import Actor
from apps.core.errors import Invalid
from apps.runs import places
from apps.runs.agent import config
from apps.runs.models import Node

logger = logging.getLogger(__name__)

# A worker beats every 5 s; one that is silent for longer than a lease has let go of its runs as well.
LIVING = timedelta(seconds=20)
_SAID = "labels: "  # how a person's change of labels begins in the log of changes


def machine_of(worker: str) -> str:
    """The boot of the machine a worker lives on; empty where that is not known."""
    boot = worker.partition("-")[0].partition(".")[0]
    return "" if boot == "unknown" else boot


def rival(name: str) -> Node | None:
    """The node of that name, when a worker of another machine keeps it alive: the two would take each other's runs."""
    found = Node.objects.filter(name=name, heartbeat_at__gt=Now() - LIVING).first()
    if found is None or not found.worker:
        return None
    here, there = machine_of(config.worker_id()), machine_of(found.worker)
    return found if here and there and here != there else None


def declare_labels(*, node: Node, labels: Mapping[str, str], now: datetime) -> None:
    """What the machine's variable says holds until a person says otherwise, and again once that is taken back."""
    if not labels or node.labels == labels:
        return
    if last_said_by_a_person(node):
        logger.warning("the labels of node %s were set by a person: CLAWPANEL_NODE_LABELS is not used", node.name)
        return
    try:
        places.set_labels(node=node, by=Actor("agent", node.name), now=now, labels=labels)
    except Invalid as error:
        logger.warning("CLAWPANEL_NODE_LABELS is not used: %s", error)


def last_said_by_a_person(node: Node) -> bool:
    kind = ContentType.objects.get_for_model(Node)
    said = LogEntry.objects.filter(content_type=kind, object_id=str(node.pk), change_message__startswith=_SAID.strip())
    last = said.order_by("-action_time", "-pk").values_list("change_message", flat=True).first()
    return last is not None and last.strip() != _SAID.strip()
