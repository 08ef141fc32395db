"""Why a run does not start yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F, FloatField, Q
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.runs.models import Node, Placement, Pool, Run
from apps.runs.reasons import label_text, sentence, span
from apps.runs.selectors.occupancy import (
    AGEING_SECONDS,
    HOLDS_JOB,
    NODE_SILENT,
    RESERVE_AFTER,
    FullGate,
    Gate,
    Lack,
    Occupancy,
    could_hold,
    has_labels,
    occupancy,
    urgency,
)
from apps.runs.selectors.turns import doing, why_no_turn
from apps.runs.states import State

MIB = 1024 * 1024
_MOST_NODES_NAMED = 3
_LARGE_LOOKED_AT = 20


def why_waiting(run: Run, now: datetime) -> str:
    """What a run that is not under way waits for; empty when it is about to start, or waits for nothing."""
    return why_they_wait([run], now)[run.pk]


def why_they_wait(runs: Sequence[Run], now: datetime) -> dict[int, str]:
    """The same for many: the queries are as many as for one."""
    queued = [run for run in runs if run.state == State.QUEUED]
    situation = _look(queued, now) if queued else None
    early = why_no_turn([run for run in runs if run.state == State.WAITING])
    found: dict[int, str] = {}
    for run in runs:
        if run.state == State.QUEUED and situation is not None:
            found[run.pk] = _why(run, situation)
        elif run.state == State.RETRY_WAIT:
            found[run.pk] = f"{sentence(run)} {_next_attempt(run, now)}".strip()
        else:
            found[run.pk] = early.get(run.pk, "")
    return found


def _next_attempt(run: Run, now: datetime) -> str:
    number = run.attempt + 1
    if run.retry_at is None or run.retry_at <= now:
        return _("Attempt %(number)d is due now.") % {"number": number}
    left = span((run.retry_at - now).total_seconds())
    return _("Attempt %(number)d is due in %(span)s.") % {"number": number, "span": left}


@dataclass(slots=True)
class _Situation:
    now: datetime
    placement: Placement | None
    nodes: list[Node]
    counts: Occupancy
    pools: dict[int, str]
    holders: dict[int, list[tuple[int, str]]]
    # By node, the runs it is kept free for.
    large: dict[int, list[Run]] = field(default_factory=dict)

    def is_open(self, node: Node) -> bool:
        return self.lives(node) and not node.trouble and node.cordoned_at is None

    def lives(self, node: Node) -> bool:
        return node.heartbeat_at > self.now - NODE_SILENT


def _look(runs: Sequence[Run], now: datetime) -> _Situation:
    placement = Placement.objects.first()
    counts = occupancy(placement)
    jobs = {run.job_id for run in runs if run.job_id is not None and run.job_limit is not None}
    holders: dict[int, list[tuple[int, str]]] = defaultdict(list)
    if jobs:
        counts.learn_jobs(jobs)
        under_way = Run.objects.filter(job_id__in=jobs, apart=False, state__in=HOLDS_JOB).order_by("pk")
        for job_id, pk, state in under_way.values_list("job_id", "pk", "state"):
            if job_id is not None:
                holders[job_id].append((pk, state))
    pools = {pool for run in runs for pool in run.pools}
    names = dict(Pool.objects.filter(pk__in=pools).values_list("pk", "name")) if pools else {}
    return _Situation(now, placement, list(Node.objects.order_by("name")), counts, names, holders)


def _why(run: Run, at: _Situation) -> str:
    if at.placement is not None and at.placement.maintenance_since is not None:
        return _maintenance(at.placement)
    if not any(at.lives(node) for node in at.nodes):
        return _("No worker is running.")
    full = next(at.counts.full_gates(run), None)
    if full is not None:
        return _gate(run, full, at)
    matching = [node for node in at.nodes if has_labels(node, run.selector)]
    if not matching:
        return _("No node has the labels %(labels)s.") % {"labels": label_text(run.selector)}
    said = _of_nodes(run, matching, at)
    if said and len(matching) < len(at.nodes):
        said += " " + _("Only nodes with the labels %(labels)s count.") % {"labels": label_text(run.selector)}
    return said


def _maintenance(placement: Placement) -> str:
    since = _moment(placement.maintenance_since) if placement.maintenance_since else ""
    values = {"since": since, "by": placement.maintenance_by, "why": placement.maintenance_why}
    if values["by"] and values["why"]:
        return _("Nothing new starts: maintenance since %(since)s by %(by)s (%(why)s).") % values
    return _("Nothing new starts: maintenance since %(since)s.") % values


def _moment(at: datetime) -> str:
    return date_format(timezone.localtime(at), "Y-m-d H:i")


def _gate(run: Run, full: FullGate, at: _Situation) -> str:
    values = {"used": full.used, "limit": full.limit}
    if full.gate is Gate.JOB:
        return _job_gate(run, full, at.holders[full.key])
    if full.gate is Gate.POOL:
        name = at.pools.get(full.key, str(full.key))
        return _("Pool %(name)s is full: %(used)d of %(limit)d.") % {**values, "name": name}
    if full.gate is Gate.SPIDER:
        name = run.spider.name
        return _("Spider %(name)s is at its limit: %(used)d of %(limit)d runs.") % {**values, "name": name}
    if full.gate is Gate.PROJECT:
        name = run.project.slug
        return _("Project %(name)s is at its limit: %(used)d of %(limit)d runs.") % {**values, "name": name}
    return _("The panel is at its limit: %(used)d of %(limit)d runs.") % values


def _job_gate(run: Run, full: FullGate, holders: list[tuple[int, str]]) -> str:
    if full.limit > 1 or not holders:
        return _("Job %(job)s allows %(limit)d runs at once and %(used)d are under way.") % {
            "job": run.job_name,
            "limit": full.limit,
            "used": full.used,
        }
    other, state = holders[0]
    return _("Job %(job)s allows one run at once and %(other)s.") % {
        "job": run.job_name,
        "other": doing(other, state),
    }


def _of_nodes(run: Run, matching: list[Node], at: _Situation) -> str:
    able = [node for node in matching if could_hold(node, run)]
    if not able:
        return _("No node is large enough for it.")
    opened = [node for node in able if at.is_open(node)]
    if not opened:
        return " ".join(_closed(node, at) for node in able[:_MOST_NODES_NAMED])
    lacks = {node.pk: at.counts.lack(run, node) for node in opened}
    ready = [node for node in opened if lacks[node.pk] is None]
    if ready:
        return _kept_free(run, ready, at)
    for lack, say in ((Lack.CPUS, _few_cpus), (Lack.MEMORY, _little_memory)):
        if short := [node for node in opened if lacks[node.pk] is lack]:
            return say(run, short, at.counts)
    return _no_place(opened)


def _closed(node: Node, at: _Situation) -> str:
    values = {"node": node.name, "trouble": node.trouble, "time": _moment(node.heartbeat_at)}
    if not at.lives(node):
        return _("Node %(node)s has not been heard of since %(time)s.") % values
    if node.drain_until is not None:
        return _("Node %(node)s is being drained until %(time)s.") % {**values, "time": _moment(node.drain_until)}
    if node.cordoned_at is not None:
        since = _moment(node.cordoned_at)
        return _("Node %(node)s has been closed for new runs since %(time)s.") % {**values, "time": since}
    return _("Node %(node)s starts nothing now: %(trouble)s") % values


def _no_place(nodes: list[Node]) -> str:
    places = sum(node.slots for node in nodes)
    if len(nodes) > 1:
        return _("All %(count)d places of the %(nodes)d nodes that could run it are taken.") % {
            "count": places,
            "nodes": len(nodes),
        }
    return ngettext(
        "The one place of node %(node)s is taken.", "All %(count)d places of node %(node)s are taken.", places
    ) % {"count": places, "node": nodes[0].name}


def _little_memory(run: Run, nodes: list[Node], counts: Occupancy) -> str:
    best = max(nodes, key=counts.free_memory)
    values = {
        "need": run.memory_bytes // MIB,
        "node": best.name,
        "free": max(0, counts.free_memory(best)) // MIB,
        "nodes": len(nodes),
    }
    if len(nodes) > 1:
        said = _("It needs %(need)d MB of memory; of %(nodes)d nodes %(node)s has the most free: %(free)d MB.")
        return said % values
    return _("It needs %(need)d MB of memory, node %(node)s has %(free)d MB free.") % values


def _few_cpus(run: Run, nodes: list[Node], counts: Occupancy) -> str:
    best = max(nodes, key=counts.free_cpus)
    values = {
        "need": f"{run.cpus:g}",
        "node": best.name,
        "free": f"{max(0.0, counts.free_cpus(best)):g}",
        "nodes": len(nodes),
    }
    if len(nodes) > 1:
        return _("It needs %(need)s CPUs; of %(nodes)d nodes %(node)s has the most free: %(free)s.") % values
    return _("It needs %(need)s CPUs, node %(node)s has %(free)s free.") % values


def _kept_free(run: Run, ready: Iterable[Node], at: _Situation) -> str:
    """Nodes with room for it that are kept for a larger, more urgent one; empty when one of them may take it."""
    first: tuple[Node, Run] | None = None
    for node in ready:
        ahead = next((large for large in _large(node, at) if _urgency(large, at) <= _urgency(run, at)), None)
        if ahead is None or ahead.pk == run.pk:
            return ""
        first = first or (node, ahead)
    if first is None:
        return ""
    node, large = first
    return _("Node %(node)s is kept free for run %(run)d, which needs %(need)d MB of memory and has waited longer.") % {
        "node": node.name,
        "run": large.pk,
        "need": large.memory_bytes // MIB,
    }


def _urgency(run: Run, at: _Situation) -> tuple[int, datetime]:
    return urgency(run.priority, (at.now - run.queued_at).total_seconds()), run.queued_at


def _large(node: Node, at: _Situation) -> list[Run]:
    """Runs that have waited long, would fit the empty node and do not fit now; the most urgent first."""
    if node.pk not in at.large:
        free = Q(memory_bytes__gt=at.counts.free_memory(node)) | Q(cpus__gt=at.counts.free_cpus(node))
        waited = RawSQL("extract(epoch FROM %s - queued_at)", (at.now,), output_field=FloatField())
        found = (
            Run.objects.filter(
                free, state=State.QUEUED, queued_at__lt=at.now - RESERVE_AFTER, memory_bytes__lte=node.memory_bytes
            )
            .alias(urgency=F("priority") - waited / AGEING_SECONDS)
            .order_by("urgency", "pk")[:_LARGE_LOOKED_AT]
        )
        at.large[node.pk] = [
            run
            for run in found
            if has_labels(node, run.selector) and could_hold(node, run) and not any(at.counts.full_gates(run))
        ]
    return at.large[node.pk]
