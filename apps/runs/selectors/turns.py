"""Why a run of a batch has not had its turn yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.runs.models import Batch, Run
from apps.runs.selectors.batches import BatchGraph, whose_turn_has_come
from apps.runs.states import TERMINAL, State

_MOST_NAMED = 3
# A run of a batch as far as a sentence needs it: its id and its state.
States = Mapping[int, Mapping[str, tuple[int, str]]]


def why_no_turn(runs: Sequence[Run]) -> dict[int, str]:
    """For waiting runs: a sentence each, empty where its turn is about to come. The queries are as many as for one."""
    told = whose_turn_has_come(runs)
    ids = {run.batch_id for run in runs if run.batch_id is not None and run.pk not in told}
    batches = Batch.objects.in_bulk(ids)
    states = _states(ids) if ids else {}
    found: dict[int, str] = {}
    for run in runs:
        batch = batches.get(run.batch_id or 0)
        if run.pk in told or (run.batch_id is None and run.spec.get("pending")):
            found[run.pk] = _("Its parameters are being filled in.")
        elif batch is None:
            found[run.pk] = _("It is not in the queue yet.")
        elif batch.kind == Batch.Kind.GRAPH:
            found[run.pk] = _of_graph(run, batch, states.get(batch.pk, {}))
        else:
            found[run.pk] = _of_group(batch)
    return found


def _states(ids: set[int]) -> States:
    found: dict[int, dict[str, tuple[int, str]]] = {}
    rows = Run.objects.filter(batch__in=ids).values_list("batch_id", "batch_key", "pk", "state")
    for batch_id, key, pk, state in rows:
        found.setdefault(batch_id or 0, {})[key] = pk, state
    return found


def _of_group(batch: Batch) -> str:
    if batch.concurrency is None:
        return ""
    return ngettext(
        "It waits for its turn: batch %(id)s lets one run go at once.",
        "It waits for its turn: batch %(id)s lets %(n)d runs go at once.",
        batch.concurrency,
    ) % {"id": batch.pk, "n": batch.concurrency}


def _of_graph(run: Run, batch: Batch, states: Mapping[str, tuple[int, str]]) -> str:
    graph = BatchGraph.read(batch.graph)
    ahead = [
        (graph.nodes[edge.upstream].name, *states[edge.upstream])
        for edge in graph.into(run.batch_key)
        if edge.upstream in states and states[edge.upstream][1] not in TERMINAL
    ]
    if not ahead:
        return ""
    named = [_("job %(job)s (%(doing)s)") % {"job": name, "doing": doing(pk, state)} for name, pk, state in ahead]
    if len(named) > _MOST_NAMED:
        rest = len(named) - _MOST_NAMED
        named[_MOST_NAMED:] = [ngettext("%(n)d more job", "%(n)d more jobs", rest) % {"n": rest}]
    values = {"jobs": ", ".join(named)}
    node = graph.nodes.get(run.batch_key)
    if len(named) > 1 and node is not None and node.join == "any":
        return _("It waits for one of: %(jobs)s.") % values
    return _("It waits for %(jobs)s.") % values


def doing(run_id: int, state: str) -> str:
    """ "run 12 is running": what keeps another run waiting."""
    words = {
        State.WAITING: _("run %(run)d waits itself"),
        State.QUEUED: _("run %(run)d is queued"),
        State.STARTING: _("run %(run)d is starting"),
        State.PAUSED: _("run %(run)d is paused"),
        State.STOPPING: _("run %(run)d is being stopped"),
        State.RETRY_WAIT: _("run %(run)d waits for its next attempt"),
    }
    return words.get(State(state), _("run %(run)d is running")) % {"run": run_id}
