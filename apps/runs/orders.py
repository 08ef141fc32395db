"""The frozen order of a run: everything it needs, copied, so that later edits of job or spider do not reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from apps.runs.models import Run
from apps.runs.policies import RetryPolicy
from apps.runs.states import Trigger
from apps.spiders.models import Project, Version

MIB = 1024 * 1024
# The limits of an order by their names in the spec; all but the first three may be absent: no such limit.
TIME_LIMITS = (
    "timeout_seconds",
    "grace_seconds",
    "start_seconds",
    "idle_seconds",
    "total_seconds",
    "queue_seconds",
    "pause_seconds",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """`secrets` maps a parameter to the id of a Secret. `version` names the spider and its code.

    Spans are seconds; None is no such limit. `pools` are ids, `selector` the labels its node must have, `job_limit` the
    most runs of the job that may run at once. `exit_codes` maps a code (as text) to {"success": bool, "meaning": {…}}.
    `arguments` stand behind the `command` (None: the version's). `templates` are the values with templates as they were
    typed, by their places ({"parameters": {name: …}, "env": {name: …}, "command": {index: …}}; empty: there were none),
    `instant` and `zone` are what their dates are of. It is `pending` while they are not filled in: for want of `calls`
    (by name) or of upstream runs. `later` has the pieces of texts that name the node, see templating.finished.
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
    start_seconds: int | None = None
    idle_seconds: int | None = None
    total_seconds: int | None = None
    queue_seconds: int | None = None
    pause_seconds: int | None = None
    priority: int = 5
    ok_codes: tuple[int, ...] = (0,)
    exit_codes: Mapping[str, Any] = field(default_factory=dict)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    on_node_lost: str = "retry"
    pools: tuple[int, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    job_limit: int | None = None
    repair_job_id: int | None = None
    arguments: tuple[str, ...] = ()
    templates: Mapping[str, Any] = field(default_factory=dict)
    zone: str = "UTC"
    instant: datetime | None = None
    pending: bool = False
    calls: Mapping[str, Any] = field(default_factory=dict)
    later: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    # Where a template names the run it must be known before the run is there.
    run_id: int | None = None
    schedule_id: int | None = None
    scheduled_for: datetime | None = None
    batch_id: int | None = None
    batch_key: str = ""
    apart: bool = False

    def spec(self) -> dict[str, Any]:
        """The frozen order as it is stored."""
        limits = {"memory_mb": self.memory_mb, "cpus": self.cpus}
        limits |= {name: getattr(self, name) for name in TIME_LIMITS if getattr(self, name) is not None}
        return {
            "spider": self.version.spider.name,
            "version": self.version.name,
            "parameters": dict(self.parameters),
            "secrets": dict(self.secrets),
            "env": dict(self.env),
            "command": [*(self.version.command if self.command is None else self.command), *self.arguments],
            "requirements": self.version.requirements,
            "code": self.version.code_id,
            "limits": limits,
            "ok_codes": list(self.ok_codes),
            "exit_codes": dict(self.exit_codes),
            "retry": self.retry.as_spec(),
            "on_node_lost": self.on_node_lost,
            "pools": list(self.pools),
            "selector": dict(self.selector),
            "job_limit": self.job_limit,
            "repair_job": self.repair_job_id,
            **self._of_templates(),
        }

    def _of_templates(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.templates:
            instant = self.instant.isoformat() if self.instant else None
            found = {"templates": dict(self.templates), "zone": self.zone, "instant": instant}
        if self.pending:
            found |= {"pending": True, "calls": dict(self.calls)}
        if self.later:
            found["later"] = dict(self.later)
        return found

    def columns(self, now: datetime) -> dict[str, Any]:
        """The part of the order that the database compares."""
        return {
            "memory_bytes": self.memory_mb * MIB,
            "cpus": self.cpus,
            "pools": list(self.pools),
            "selector": dict(self.selector),
            "job_limit": self.job_limit,
            "schedule_id": self.schedule_id,
            "scheduled_for": self.scheduled_for,
            "batch_id": self.batch_id,
            "batch_key": self.batch_key,
            "apart": self.apart,
            "expires_at": None if self.queue_seconds is None else now + timedelta(seconds=self.queue_seconds),
        }


def order_of(run: Run, *, trigger: Trigger, parameters: Mapping[str, Any] | None = None) -> RunOrder:
    """The run's order once more; `parameters` in place of its own.

    It stands for the same time, but it is not what the schedule has fired for it, nor a part of the batch.
    """
    spec = run.spec
    limits = spec["limits"]
    length = len(run.version.command)
    return RunOrder(
        version=run.version,
        trigger=trigger,
        project=run.project,
        job_id=run.job_id,
        job_name=run.job_name,
        parameters=spec["parameters"] if parameters is None else parameters,
        secrets=spec["secrets"],
        env=spec["env"],
        memory_mb=limits["memory_mb"],
        cpus=limits["cpus"],
        **{name: limits[name] for name in TIME_LIMITS if name in limits},
        priority=run.priority,
        ok_codes=tuple(spec.get("ok_codes", (0,))),
        exit_codes=spec.get("exit_codes") or {},
        retry=RetryPolicy.read(spec.get("retry")),
        on_node_lost=spec.get("on_node_lost") or "retry",
        pools=tuple(spec.get("pools") or ()),
        selector=spec.get("selector") or {},
        job_limit=spec.get("job_limit"),
        repair_job_id=spec.get("repair_job"),
        command=tuple(spec["command"][:length]),
        arguments=tuple(spec["command"][length:]),
        later=spec.get("later") or {},
        scheduled_for=run.scheduled_for,
        **_unfilled(spec, parameters),
    )


def _unfilled(spec: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values that have been filled in are the run's own, and stay. What never was is filled in anew, except where other
    `parameters` are in its place."""
    if not spec.get("pending"):
        return {}
    instant = spec.get("instant")
    templates = dict(spec.get("templates") or {})
    if parameters is not None:
        templates["parameters"] = unfilled_parameters(spec, parameters)
    return {
        "templates": templates,
        "zone": spec.get("zone") or "UTC",
        "instant": datetime.fromisoformat(instant) if instant else None,
        "pending": True,
        "calls": spec.get("calls") or {},
    }


def unfilled_parameters(spec: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `parameters` that are templates of the order which were never filled in."""
    typed = (spec.get("templates") or {}).get("parameters") or {} if spec.get("pending") else {}
    return {name: value for name, value in typed.items() if name in parameters and parameters[name] == value}


def as_typed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The stored order as it was before its templates were filled in, and without what differs with the moment."""
    templates = spec.get("templates") or {}
    command = list(spec["command"])
    for index, text in (templates.get("command") or {}).items():
        command[int(index)] = text
    passing = ("instant", "pending", "calls", "later")
    return {name: value for name, value in spec.items() if name not in passing} | {
        "parameters": {**spec["parameters"], **(templates.get("parameters") or {})},
        "env": {**spec["env"], **(templates.get("env") or {})},
        "command": command,
    }
