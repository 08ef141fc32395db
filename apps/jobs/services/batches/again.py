"""A batch once more, from where it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.changes import ADDITION, note_change
from apps.core.errors import Conflict, NotFound, PanelError
from apps.core.templating import root_of
from apps.jobs.models import Job
from apps.jobs.services.batches.deciding import FAILURES
from apps.jobs.services.batches.settling import give_turns
from apps.jobs.services.launching import Launch, order_of_launch
from apps.jobs.services.locking import locked_jobs
from apps.jobs.services.rendering.filling import Typed
from apps.jobs.services.turns import give_turn
from apps.runs.models import Batch, Run
from apps.runs.orders import RunOrder, as_typed, order_of
from apps.runs.selectors.batches import BatchGraph, GraphNode
from apps.runs.services import request_run
from apps.runs.states import ACTIVE, State, Trigger


class NothingToRepeat(Conflict):
    """It goes on still, or nothing in it failed."""

    code = "nothing_to_repeat"


@transaction.atomic
def again_from_failed(*, batch: Batch, by: Actor, now: datetime) -> Batch:
    """A new batch of what failed and of all behind it; what went well is taken over. `origin` is the old one.

    The orders are those of then: the same versions, the same parameters, the dates of the same time. Only what is put
    into them of upstream runs is of the new ones.
    """
    graph = BatchGraph.read(batch.graph)
    # Jobs before batches, as everybody locks them.
    jobs = {job.pk: job for job in locked_jobs(node.job for node in graph.nodes.values() if not node.outside)}
    rows = Batch.objects.select_for_update(of=("self",), no_key=True).select_related("project", "job")
    old = rows.filter(pk=batch.pk, kind=Batch.Kind.GRAPH).first()
    if old is None:
        raise NotFound(_("There is no such batch."))
    runs = {run.batch_key: run for run in _whole_runs(old)}
    redone = _redone(old, graph, runs)
    new = _batch_of(old, by, now)
    wanted = {key: (runs.get(key), jobs.get(graph.nodes[key].job)) for key in redone}
    orders, troubles = _orders(new, graph.root, wanted, by, now)
    nodes = {key: _node(graph.nodes[key], key in redone, runs.get(key), troubles.get(key, "")) for key in graph.nodes}
    new.graph = replace(graph, nodes=nodes).stored()
    new.save(force_insert=True)
    note_change(new, by, f"again: {old.pk}", ADDITION)
    for key in graph.order():
        if key not in orders:
            continue
        order = replace(orders[key], batch_id=new.pk, batch_key=key)
        run, _new = request_run(order=order, by=by, now=now, waiting=True)
        if key == graph.root:
            give_turn(run=run, spec=run.spec, now=now)
    give_turns(batch=new, now=now)
    return new


def _whole_runs(batch: Batch) -> list[Run]:
    return list(Run.objects.filter(batch=batch).select_related("project", "version__spider").order_by("pk"))


def _redone(batch: Batch, graph: BatchGraph, runs: Mapping[str, Run]) -> set[str]:
    """Keys of what failed or was canceled, of what a job outside kept from running, and of all behind them."""
    if batch.finished_at is None and any(run.state in ACTIVE for run in runs.values()):
        raise NothingToRepeat(_("Batch %(id)s goes on still.") % {"id": batch.pk})
    taken_up = Batch.objects.filter(origin=batch, finished_at=None).order_by("-pk").first()
    if taken_up is not None:
        raise NothingToRepeat(_("Batch %(id)s does that already.") % {"id": taken_up.pk})
    failed = failed_in(graph, runs)
    if not failed:
        raise NothingToRepeat(_("Nothing in batch %(id)s has failed.") % {"id": batch.pk})
    return {*failed, *graph.behind(failed)}


def failed_in(graph: BatchGraph, runs: Mapping[str, Run]) -> list[str]:
    """Keys from which a finished batch can be taken up again."""
    return [key for key, node in graph.nodes.items() if _is_to_redo(graph, node, runs.get(key))]


def _is_to_redo(graph: BatchGraph, node: GraphNode, run: Run | None) -> bool:
    if node.outside or node.settled:
        return False
    if run is None:
        return True
    if run.state == State.SKIPPED:
        return any(graph.nodes[edge.upstream].outside for edge in graph.into(node.key))
    return run.state in (*FAILURES, State.CANCELED)


def _batch_of(old: Batch, by: Actor, now: datetime) -> Batch:
    return Batch(
        project=old.project,
        job=old.job,
        job_name=old.job_name,
        kind=old.kind,
        name=old.name,
        trigger=_asked_by(by),
        requested_by_id=by.user_id,
        actor=str(by)[:200],
        schedule_id=old.schedule_id,
        scheduled_for=old.scheduled_for,
        origin=old,
        created_at=now,
    )


def _asked_by(by: Actor) -> Trigger:
    return Trigger.API if by.kind == "api" else Trigger.MANUAL


def _node(node: GraphNode, redone: bool, run: Run | None, trouble: str) -> GraphNode:
    if redone:
        return replace(node, settled=None, trouble=trouble)
    return node if node.settled or run is None else replace(node, settled=run.pk, trouble="")


# -- orders ---------------------------------------------------------------------------------------------------------


def _orders(
    batch: Batch, root: str, wanted: Mapping[str, tuple[Run | None, Job | None]], by: Actor, now: datetime
) -> tuple[dict[str, RunOrder], dict[str, str]]:
    """By key: the orders, and the sentences for jobs that can still not be ordered."""
    orders: dict[str, RunOrder] = {}
    troubles: dict[str, str] = {}
    for key, (run, job) in wanted.items():
        trigger = _asked_by(by) if key == root else Trigger.UPSTREAM
        if run is not None:
            orders[key] = order_of(_with_templates(run, job), trigger=trigger)
        elif job is None:
            troubles[key] = _("This job has been deleted.")
        else:
            launch = Launch(job=job, trigger=trigger, scheduled_for=batch.scheduled_for or now, batch_key=key)
            try:
                with transaction.atomic():
                    orders[key] = order_of_launch(job=job, wanted=launch, by=by, now=now)[0]
            except PanelError as error:
                troubles[key] = error.message
    return orders, troubles


def _with_templates(run: Run, job: Job | None) -> Run:
    """The run as it was before it was filled in, if anything in it came from other runs: they are others now."""
    spec: dict[str, Any] = run.spec
    if spec.get("pending"):
        return run
    if not any(root_of(name) == "upstream" for name in Typed.read(spec.get("templates") or {}).names()):
        return run
    calls = spec.get("calls") or (job.calls if job else {})
    run.spec = {**spec, **as_typed(spec), "pending": True, "calls": calls, "instant": spec.get("instant"), "later": {}}
    return run
