"""The beginning of a batch: all that follows a job, frozen."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from apps.core.actors import Actor
from apps.core.errors import PanelError
from apps.jobs.models import Dependency, Job
from apps.jobs.selectors.graph import Follows, edges_behind
from apps.jobs.services.launching import Launch, order_of_launch
from apps.jobs.services.locking import locked_jobs
from apps.jobs.services.turns import note_turn
from apps.runs.models import Batch, Run
from apps.runs.selectors.batches import BatchGraph, GraphEdge, GraphNode, newest_finished
from apps.runs.services import join_batch, request_run
from apps.runs.states import State, Trigger

logger = logging.getLogger(__name__)

# What these ask for is about the one job: a repair, the past, a row of a table.
_ALONE = (Trigger.REPAIR, Trigger.BACKFILL, Trigger.INPUTS)


def jobs_with_followers(*, job_ids: Collection[int]) -> set[int]:
    """Those of the jobs whose launch begins a batch: whoever launches many at once launches these one by one."""
    return set(Dependency.objects.filter(upstream__in=job_ids).values_list("upstream_id", flat=True))


def edges_of_batch(*, wanted: Launch) -> list[Follows]:
    """The edges of the batch that the launch begins; none when it begins none.

    The jobs that follow are locked, in the order of their ids together with the launched one: their secrets must not be
    dropped before their runs name them, and two launches must not wait for each other.
    """
    if wanted.batch_id or wanted.trigger in _ALONE:
        return []
    edges = edges_behind([wanted.job.pk])
    if edges:
        locked_jobs([wanted.job.pk, *(edge.job for edge in edges)])
    return edges


def start_batch(
    *, root: Run, job: Job, wanted: Launch, edges: Sequence[Follows], by: Actor, now: datetime
) -> Batch | None:
    """Insert the run of each job that follows `job`, waiting, its order frozen; None when none does.

    The caller holds the locks of `edges_of_batch`. `root` becomes the first run of the batch.
    """
    graph, jobs = _frozen(job, edges)
    if jobs.keys() == {graph.root}:
        return None
    batch = Batch.objects.create(
        project=job.project,
        job=job,
        job_name=job.name,
        kind=Batch.Kind.GRAPH,
        trigger=wanted.trigger,
        requested_by_id=by.user_id,
        actor=str(by)[:200],
        schedule_id=wanted.schedule_id,
        scheduled_for=wanted.scheduled_for,
        created_at=now,
    )
    join_batch(run=root, batch=batch, key=graph.root)
    if root.state == State.WAITING:
        note_turn(run=root, now=now)
    nodes = dict(graph.nodes)
    for key in graph.order():
        if key != graph.root and key in jobs:
            trouble = _wait_in_batch(batch, jobs[key], wanted, by=by, now=now)
            nodes[key] = replace(nodes[key], trouble=trouble)
    Batch.objects.filter(pk=batch.pk).update(graph=replace(graph, nodes=nodes).stored())
    batch.refresh_from_db(fields=("graph",))
    return batch


def _frozen(job: Job, edges: Sequence[Follows]) -> tuple[BatchGraph, Mapping[str, Job]]:
    """The graph, and the jobs that are inside it. A job deleted since the edges were read is not in it any more."""
    ids = {job.pk, *(edge.job for edge in edges)}
    around = {edge.upstream for edge in edges} - ids
    known = Job.objects.select_related("project", "spider__current_version", "version").in_bulk(ids | around)
    nodes = {str(pk): _node(each, outside=pk in around) for pk, each in sorted(known.items())}
    lines = tuple(
        GraphEdge(str(edge.upstream), str(edge.job), edge.condition)
        for edge in edges
        if edge.upstream in known and edge.job in known
    )
    graph = BatchGraph(str(job.pk), nodes, lines)
    inside = {graph.root, *graph.behind([graph.root])}
    kept = {key: node for key, node in nodes.items() if node.outside or key in inside}
    return replace(graph, nodes=kept), {str(pk): each for pk, each in known.items() if str(pk) in inside}


def _node(job: Job, *, outside: bool) -> GraphNode:
    last = newest_finished(job.pk) if outside else None
    return GraphNode(
        key=str(job.pk),
        job=job.pk,
        name=job.name,
        join=job.join,
        outside=outside,
        last=(last.pk, last.state) if last else None,
    )


def _wait_in_batch(batch: Batch, job: Job, wanted: Launch, *, by: Actor, now: datetime) -> str:
    """Insert its run; the sentence why there can be none, else empty. One that is broken stops no other."""
    launch = Launch(
        job=job,
        trigger=Trigger.UPSTREAM,
        # Dates in it are of the batch's time, however late its turn comes.
        scheduled_for=wanted.scheduled_for or now,
        zone=wanted.zone,
        batch_id=batch.pk,
        batch_key=str(job.pk),
    )
    try:
        with transaction.atomic():
            order, _ready = order_of_launch(job=job, wanted=launch, by=by, now=now)
            request_run(order=order, by=by, now=now, waiting=True)
    except PanelError as error:
        logger.warning("job %s could not be put into batch %s: %s", job.pk, batch.pk, error.message)
        return error.message
    return ""
