"""What becomes of a run whose node says nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from apps.runs.models import Node, Run
from apps.runs.reasons import span
from apps.runs.selectors.occupancy import NODE_SILENT
from apps.runs.states import PLACED, State

# An agent beats every 5 s: before that nothing is unusual.
UNUSUAL = timedelta(seconds=30)


def silence(run: Run, now: datetime) -> str:
    """One sentence when the node that holds the run does not answer; empty when it does."""
    if run.state not in PLACED or run.node_id is None:
        return ""
    node = Node.objects.filter(pk=run.node_id).values("name", "heartbeat_at").first()
    if node is None or now - node["heartbeat_at"] < UNUSUAL:
        return ""
    seconds = (now - node["heartbeat_at"]).total_seconds()
    known = {"node": node["name"], "span": span(seconds if seconds < 120 else seconds // 60 * 60)}
    if run.state == State.STOPPING:
        # It is not over before that is seen, or nobody can see it any more.
        return _("Stop requested, but node %(node)s has not answered for %(span)s.") % known
    if isinstance(run.spec, dict) and run.spec.get("on_node_lost") == "wait":
        return _("Node %(node)s has not answered for %(span)s. The run stays with it until it is back.") % known
    known["most"] = span(NODE_SILENT.total_seconds())
    return _("Node %(node)s has not answered for %(span)s. After %(most)s this attempt counts as lost.") % known
