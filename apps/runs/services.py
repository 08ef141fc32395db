"""Asking for runs, stopping them, and saying why one waits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Sum
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.core.actors import SYSTEM, Actor
from apps.core.background import enqueue
from apps.core.errors import Conflict, Invalid
from apps.runs import queue
from apps.runs.models import Node, Run, RunEvent
from apps.runs.moves import StaleRun, announce, move
from apps.runs.states import PLACED, TERMINAL, State, Trigger
from apps.spiders.models import Project, Version

__all__ = ["RunFinished", "RunOrder", "StaleRun", "move", "request_run", "request_stop", "rerun", "why_waiting"]

MIB = 1024 * 1024
NODE_SILENT = timedelta(seconds=120)
# An agent beats every 5 s; one that could not waits up to 5 s more and needs up to 5 s to connect.
HEARTBEAT_DUE_SECONDS = 15.0
_AT_REST = (State.WAITING, State.QUEUED, State.RETRY_WAIT)
_MOVING = (State.STARTING, State.RUNNING, State.PAUSED)


class RunFinished(Conflict):
    """What was asked for is not possible any more."""

    code = "run_finished"


class KeyUsed(Conflict):
    """The idempotency key belongs to another order."""

    code = "idempotency_key_used"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Everything a run needs; it is copied into the run, so later edits of job or spider do not reach it.

    `secrets` maps a parameter to the id of a Secret. `version` names the spider and its code.
    """

    version: Version
    trigger: Trigger
    project: Project
    job_id: int | None = None
    job_name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, int] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = 512
    cpus: float = 1.0
    timeout_seconds: int = 3600
    grace_seconds: int = 10
    priority: int = 5
    ok_codes: tuple[int, ...] = (0,)

    def spec(self) -> dict[str, Any]:
        """The frozen order as it is stored."""
        return {
            "spider": self.version.spider.name,
            "version": self.version.name,
            "parameters": dict(self.parameters),
            "secrets": dict(self.secrets),
            "env": dict(self.env),
            "command": list(self.version.command),
            "requirements": self.version.requirements,
            "code": self.version.code_id,
            "limits": {
                "memory_mb": self.memory_mb,
                "cpus": self.cpus,
                "timeout_seconds": self.timeout_seconds,
                "grace_seconds": self.grace_seconds,
            },
            "ok_codes": list(self.ok_codes),
        }


@transaction.atomic
def request_run(*, order: RunOrder, by: Actor, now: datetime, idempotency_key: str | None = None) -> tuple[Run, bool]:
    """Queue a run. With a key seen before in the project, the run of then and False."""
    if idempotency_key is not None:
        idempotency_key = _checked_key(idempotency_key)
        known = _run_of_key(order, idempotency_key)
        if known is not None:
            return known, False
    run = Run(
        project=order.project,
        job_id=order.job_id,
        job_name=order.job_name,
        spider=order.version.spider,
        version=order.version,
        priority=order.priority,
        trigger=order.trigger,
        requested_by_id=by.user_id,
        idempotency_key=idempotency_key,
        request_id=uuid.uuid4(),
        spec=order.spec(),
        memory_bytes=order.memory_mb * MIB,
        month=now.date().replace(day=1),
        queued_at=now,
    )
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        # Two requests with one key at once: the unique constraint let one through.
        known = _run_of_key(order, idempotency_key) if idempotency_key is not None else None
        if known is None:
            raise
        return known, False
    RunEvent.objects.create(run=run, at=now, to_state=State.QUEUED, actor=str(by)[:200])
    transaction.on_commit(lambda: announce(run.pk, "", State.QUEUED))
    if queue.refuse_unplaceable(now=now, run_id=run.pk):
        run.refresh_from_db()
    else:
        enqueue("runs.wake")
    return run, True


def _checked_key(key: str) -> str:
    if not key or len(key) > 200 or not key.isprintable():
        raise Invalid(_("An idempotency key is 1 to 200 printable characters."))
    return key


def _run_of_key(order: RunOrder, key: str) -> Run | None:
    run = Run.objects.filter(project=order.project, idempotency_key=key).first()
    if run is None:
        return None
    same = run.job_id == order.job_id and run.version_id == order.version.pk and run.spec == order.spec()
    if not same or run.priority != order.priority:
        raise KeyUsed(_("This idempotency key was used for another run, %(id)s.") % {"id": run.pk})
    return run


@transaction.atomic
def request_stop(*, run: Run, by: Actor, now: datetime, cause: str = "user") -> None:
    """End a run from any active state; a second request changes nothing. It is over when its end is proven."""
    known: dict[str, Any] = {
        "run_id": run.pk,
        "now": now,
        "actor": by,
        "reason": "stopped_by_user" if cause == "user" else cause,
        "detail": {"by": by.name} if cause == "user" else {},
        "stop_requested_at": now,
        "stop_cause": cause,
    }
    stopped = move(to=State.CANCELED, frm=_AT_REST, **known)
    if not stopped and move(to=State.STOPPING, frm=_MOVING, **known):
        stopped = True
        enqueue("runs.wake")
    run.refresh_from_db()
    if not stopped and run.state in TERMINAL:
        over = {"id": run.pk, "state": run.get_state_display()}
        raise RunFinished(_("Run %(id)s is over already: %(state)s.") % over)


def rerun(*, run: Run, by: Actor, now: datetime, trigger: Trigger) -> Run:
    """The same order once more: same version, parameters and limits."""
    limits = run.spec["limits"]
    order = RunOrder(
        version=run.version,
        trigger=trigger,
        project=run.project,
        job_id=run.job_id,
        job_name=run.job_name,
        parameters=run.spec["parameters"],
        secrets=run.spec["secrets"],
        env=run.spec["env"],
        memory_mb=limits["memory_mb"],
        cpus=limits["cpus"],
        timeout_seconds=limits["timeout_seconds"],
        grace_seconds=limits["grace_seconds"],
        priority=run.priority,
        ok_codes=tuple(run.spec.get("ok_codes", (0,))),
    )
    return request_run(order=order, by=by, now=now)[0]


def why_waiting(run: Run, now: datetime) -> str:
    """One sentence on why a queued run does not start; empty when it is not waiting or about to start."""
    if run.state != State.QUEUED:
        return ""
    nodes = list(Node.objects.filter(heartbeat_at__gt=now - NODE_SILENT))
    if not nodes:
        return _("No worker is running.")
    able = [node for node in nodes if not node.trouble and node.cordoned_at is None]
    if not able:
        troubled = next((node for node in nodes if node.trouble), None)
        if troubled is None:
            return _("All nodes are closed for new runs.")
        return _("Node %(node)s starts nothing now: %(trouble)s") % {"node": troubled.name, "trouble": troubled.trouble}
    used = {
        row["node_id"]: row
        for row in Run.objects.filter(state__in=PLACED, node__in=able)
        .values("node_id")
        .annotate(count=Count("pk"), memory=Sum("memory_bytes"))
    }
    with_slot = [node for node in able if node.pk not in used or used[node.pk]["count"] < node.slots]
    if not with_slot:
        running = sum(row["count"] for row in used.values())
        return ngettext(
            "All places are taken: %(count)d run is active.",
            "All places are taken: %(count)d runs are active.",
            running,
        ) % {"count": running}
    free = max(node.memory_bytes - (used[node.pk]["memory"] if node.pk in used else 0) for node in with_slot)
    if free < run.memory_bytes:
        return _("It needs %(need)d MB of memory and %(free)d MB are free now.") % {
            "need": run.memory_bytes // MIB,
            "free": max(0, free) // MIB,
        }
    return ""


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
