"""The machines that run things, for everybody to see; who may change them closes, drains and labels them here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.rights import may_change
from apps.core.actors import person
from apps.core.durations import parse_duration
from apps.core.errors import PanelError
from apps.runs import places, selectors
from apps.runs.forms import read_labels, write_labels
from apps.runs.models import Node, Placement
from apps.runs.views.listing import rows_of

DRAIN_WITHIN = "30 min"
_ACTIONS: Mapping[str, Callable[..., None]] = {
    "cordon": places.cordon,
    "uncordon": places.uncordon,
    "end_drain": places.end_drain,
}


def state_words() -> dict[str, tuple[str, str]]:
    """The word and the colour of each state of a node."""
    return {
        "ready": (_("Ready"), "green"),
        "closed": (_("Closed"), "yellow"),
        "draining": (_("Draining"), "yellow"),
        "silent": (_("Silent"), "grey"),
        "trouble": (_("In trouble"), "red"),
    }


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node with its state in words."""

    glance: selectors.NodeGlance
    word: str
    tone: str
    icon: str

    @property
    def node(self) -> Node:
        return self.glance.node


_ICONS = {
    "ready": "icon:circle-check",
    "closed": "icon:lock",
    "draining": "icon:hourglass",
    "silent": "icon:server-off",
    "trouble": "icon:alert-triangle",
}


def _line(glance: selectors.NodeGlance) -> NodeLine:
    word, tone = state_words()[glance.state]
    return NodeLine(glance, word, tone, _ICONS[glance.state])


@login_required
@require_safe
@never_cache
def node_list(request: HttpRequest) -> HttpResponse:
    context = {
        "lines": [_line(glance) for glance in selectors.nodes_at_a_glance(now=timezone.now())],
        "may_steer": may_change(request.user, Placement),
    }
    return render(request, "nodes/list.html", context)


@login_required
@require_safe
@never_cache
def node_detail(request: HttpRequest, pk: int) -> HttpResponse:
    node = get_object_or_404(Node, pk=pk)
    glance = selectors.nodes_at_a_glance(now=timezone.now(), nodes=[node])[0]
    runs, others = selectors.runs_on(request.user, node)
    context = {
        "line": _line(glance),
        "node": node,
        "rows": rows_of(request.user, runs),
        "others": others,
        "may_change": may_change(request.user, Node),
        "labels_text": write_labels(node.labels),
        "drain_within": DRAIN_WITHIN,
        "changes": [(entry, change_words(entry)) for entry in selectors.changes_of(node)],
    }
    return render(request, "nodes/detail.html", context)


def change_words(entry: LogEntry) -> str:
    """A change of a node, pool or the maintenance in the reader's words."""
    code, _colon, value = entry.change_message.partition(": ")
    until = parse_datetime(value) if code == "drain" else None
    return {
        "cordoned": _("Closed for new runs"),
        "uncordoned": _("Opened for new runs"),
        "drain": _("Drained until %(time)s") % {"time": _shown(until)},
        "drain_ended": _("Draining ended"),
        "labels": _("Labels set: %(labels)s") % {"labels": value or "—"},
    }.get(code, entry.change_message)


def _shown(moment: datetime | None) -> str:
    return date_format(timezone.localtime(moment), "Y-m-d H:i") if moment else "—"


def _node_to_change(request: HttpRequest, pk: int) -> Node:
    """For all who may not change nodes there is no such address."""
    if not may_change(request.user, Node):
        raise Http404
    return get_object_or_404(Node, pk=pk)


@login_required
@require_POST
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    node = _node_to_change(request, pk)
    _ACTIONS[action](node=node, by=person(request.user), now=timezone.now())
    return redirect("nodes:detail", node.pk)


@login_required
@require_POST
def drain(request: HttpRequest, pk: int) -> HttpResponse:
    node = _node_to_change(request, pk)
    within = timedelta(seconds=parse_duration(request.POST.get("within", "")))
    places.drain(node=node, by=person(request.user), now=timezone.now(), within=within)
    return redirect("nodes:detail", node.pk)


@login_required
@require_POST
def labels(request: HttpRequest, pk: int) -> HttpResponse:
    node = _node_to_change(request, pk)
    wanted = read_labels(request.POST.get("labels", ""))
    places.set_labels(node=node, by=person(request.user), now=timezone.now(), labels=wanted)
    messages.success(request, _("The labels of %(node)s are saved.") % {"node": node.name})
    return redirect("nodes:detail", node.pk)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def maintenance(request: HttpRequest) -> HttpResponse:
    """Asks for the reason, and stops all starts."""
    if not may_change(request.user, Placement):
        raise Http404
    own, wrong = selectors.maintenance(), ""
    why = request.POST.get("why", own.maintenance_why if own else "")
    if request.method == "POST":
        try:
            places.begin_maintenance(by=person(request.user), now=timezone.now(), why=why)
        except PanelError as error:
            wrong = error.message
        else:
            return redirect("nodes:list")
    context: dict[str, Any] = {"why": why, "wrong": wrong, "own": own}
    return render(request, "nodes/maintenance.html", context, status=422 if wrong else 200)


@login_required
@require_POST
def end_maintenance(request: HttpRequest) -> HttpResponse:
    if not may_change(request.user, Placement):
        raise Http404
    places.end_maintenance(by=person(request.user), now=timezone.now())
    messages.success(request, _("Maintenance is over: runs start again."))
    return redirect("nodes:list")
