"""Why a run does not start yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.runs.models import Node, Run
from apps.runs.states import PLACED, State

MIB = 1024 * 1024
NODE_SILENT = timedelta(seconds=120)


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
