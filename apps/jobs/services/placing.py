"""Where runs of a job may go: pools, labels, and whether any node is large enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from apps.jobs.models import Job
from apps.jobs.policies import Faults, check_selector
from apps.runs.models import Node, Pool, Run
from apps.runs.selectors.occupancy import could_hold, has_labels

MIB = 1024 * 1024
MOST_POOLS = 20


def take_pools(changes: dict[str, Any], *, faults: Faults) -> list[Pool] | None:
    """The named pools, by name or id; None when nothing is said of them."""
    if "pools" not in changes:
        return None
    given = changes["pools"]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        faults["pools"] = [_("This is a list.")]
        return None
    wanted = [each.pk if isinstance(each, Pool) else each for each in given]
    if len(wanted) > MOST_POOLS:
        faults["pools"] = [_("At most %(n)d are allowed.") % {"n": MOST_POOLS}]
        return None
    ids = [each for each in wanted if isinstance(each, int) and not isinstance(each, bool) and 0 < each < 2**63]
    names = [each for each in wanted if isinstance(each, str) and "\0" not in each]
    found = list(Pool.objects.filter(Q(pk__in=ids) | Q(name__in=names)).order_by("name", "pk"))
    known = {*(pool.pk for pool in found), *(pool.name for pool in found)}
    if missing := [str(each)[:64] for each in wanted if not isinstance(each, int | str) or each not in known]:
        faults["pools"] = [_("There is no pool “%(name)s”.") % {"name": name} for name in missing]
    return found


def take_selector(job: Job, changes: dict[str, Any], *, faults: Faults) -> None:
    if "selector" not in changes:
        return
    job.selector, wrong = check_selector(changes["selector"])
    if wrong:
        faults["selector"] = wrong


def check_capacity(job: Job, changes: dict[str, Any], *, faults: Faults) -> None:
    """Refuse what no node could ever take; while no node is known anything may be true later."""
    touched = {"memory_mb", "cpus", "selector"}
    if (job.pk and not changes.keys() & touched) or faults.keys() & touched:
        return
    nodes = list(Node.objects.only("name", "labels", "memory_bytes", "cpus").order_by("name"))
    if not nodes:
        return
    able = [node for node in nodes if has_labels(node, job.selector)]
    if not able:
        faults["selector"] = [_no_such_node(nodes)]
        return
    shape = Run(memory_bytes=job.memory_mb * MIB, cpus=job.cpus)
    if any(could_hold(node, shape) for node in able):
        return
    memory, cpus = max(node.memory_bytes // MIB for node in able), max(node.cpus for node in able)
    if job.memory_mb > memory:
        sizes = {"need": job.memory_mb, "most": memory}
        faults["memory_mb"] = [_("No node has %(need)d MB for a run: the largest has %(most)d MB.") % sizes]
    if job.cpus > cpus:
        counts = {"need": job.cpus, "most": cpus}
        faults["cpus"] = [_("No node has %(need)g CPUs for a run: the largest has %(most)g.") % counts]
    if job.memory_mb <= memory and job.cpus <= cpus:
        both = {"memory": job.memory_mb, "cpus": job.cpus}
        faults["memory_mb"] = [_("No single node has both %(memory)d MB and %(cpus)g CPUs.") % both]


def _no_such_node(nodes: list[Node]) -> str:
    known = sorted({f"{name}={value}" for node in nodes for name, value in node.labels.items()})
    if not known:
        return _("No node has these labels; no node has any.")
    return _("No node has these labels. Known: %(labels)s.") % {"labels": ", ".join(known[:20])}
