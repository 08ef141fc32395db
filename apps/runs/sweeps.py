"""The net under the agents: what is due although nobody who should see to it lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import Max
from django.db.models.functions import Now

from apps.core.actors import SYSTEM
from apps.core.background import enqueue
from apps.runs.models import Run
from apps.runs.moves import move
from apps.runs.states import PLACED, State

NODE_SILENT = timedelta(seconds=120)
# An agent beats every 5 s; one that could not waits up to 5 s more and needs up to 5 s to connect.
HEARTBEAT_DUE_SECONDS = 15.0


def give_up_on_silent_nodes(
    *, now: datetime, silent: timedelta = NODE_SILENT, wait: Callable[[float], object] = time.sleep
) -> int:
    """Runs of a node that has said nothing for two minutes are lost; nobody can tell what became of them.

    By the database's clock, which stamps the heartbeats. After the database was away or its clock was set every node
    seems silent until its next heartbeat, so those that do are looked at a second time.
    """
    lost = 0
    last_word = Run.objects.filter(state__in=PLACED).exclude(node__heartbeat_at__gt=Now() - silent)
    suspects = set(last_word.values_list("pk", "token"))
    if not suspects:
        return lost
    wait(HEARTBEAT_DUE_SECONDS)
    for run_id, token, node in last_word.values_list("pk", "token", "node__name"):
        if (run_id, token) not in suspects:
            continue
        lost += move(
            run_id=run_id,
            to=State.LOST,
            frm=PLACED,
            now=now,
            actor=SYSTEM,
            token=token,
            reason="node_lost",
            detail={"node": node or ""},
        )
    return lost


def wake_if_work_waits(*, now: datetime) -> bool:
    """A hint in place of one that may be lost."""
    oldest = Run.objects.filter(state=State.QUEUED).aggregate(oldest=Max("queued_at"))["oldest"]
    if oldest is not None:
        enqueue("runs.wake")
    return oldest is not None
