"""Batches over the REST API, and which jobs follow which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import User
from apps.core.actors import person
from apps.core.rest import ApiViewSet, ErrorSerializer, checked, checked_query, page, take
from apps.jobs import selectors
from apps.jobs.models import Job
from apps.jobs.selectors.graph import neighbours
from apps.jobs.serializers.batches import (
    BatchDetailSerializer,
    BatchPage,
    BatchQuery,
    BatchSerializer,
    DependenciesSerializer,
    neighbour_row,
)
from apps.jobs.serializers.groups import AgainSerializer
from apps.jobs.services import batches, groups
from apps.jobs.services.graph import set_dependencies
from apps.jobs.views.batch_nodes import nodes_of
from apps.runs.models import Batch
from apps.runs.selectors.batches import BatchGraph, visible_batches
from apps.runs.selectors.groups import progress_of


@extend_schema(tags=["batches"])
class BatchViewSet(ApiViewSet):
    """Batches of jobs the caller may see."""

    serializer_class = BatchSerializer
    lookup_value_converter = "int"

    def _take(self, request: Request, pk: int, may: str = "view") -> Batch:
        permitted = visible_batches(request.user, may)
        return take(visible_batches(request.user), permitted, pk, _("You may not do this with this batch."))

    def _answer(self, request: Request, batch: Batch, status: int = 200) -> Response:
        nodes = nodes_of(batch, request.user, timezone.now()) if batch.kind == Batch.Kind.GRAPH else []
        edges = BatchGraph.read(batch.graph).edges if nodes else ()
        context = {"progress": progress_of([batch]), "nodes": nodes, "edges": edges}
        return Response(BatchDetailSerializer(batch, context=context).data, status=status)

    @extend_schema(summary="List batches, newest first", parameters=[BatchQuery], responses=BatchPage)
    def list(self, request: Request) -> Response:
        query = checked_query(BatchQuery, request)
        found: QuerySet[Batch] = visible_batches(request.user)
        if "job" in query:
            found = found.filter(job=query["job"])
        if "kind" in query:
            found = found.filter(kind=query["kind"])
        if query["open"] is not None:
            found = found.filter(finished_at__isnull=query["open"])
        rows, following = page(request, found, key="-id", after=query["after"], limit=query["limit"])
        return Response({"results": _shown(rows), "next": following})

    @extend_schema(summary="Show a batch with its graph", responses=BatchDetailSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return self._answer(request, self._take(request, pk))

    @extend_schema(
        summary="Stop a batch",
        description="What runs is stopped, what waits is canceled. Asking again changes nothing.",
        request=None,
        responses={200: BatchDetailSerializer, 409: OpenApiResponse(ErrorSerializer, "The batch is over already.")},
    )
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: int) -> Response:
        batch = self._take(request, pk, "stop")
        batches.stop_batch(batch=batch, by=person(request.user, "api"), now=timezone.now())
        return self._answer(request, batch)

    @extend_schema(
        summary="Run a batch again from where it failed",
        description="A new batch. Of a graph: what failed or was canceled and all behind it runs again, what went well "
        "is taken over. Of a backfill or a table of inputs: the runs that failed.",
        request=AgainSerializer,
        responses={
            201: BatchDetailSerializer,
            409: OpenApiResponse(ErrorSerializer, "It goes on still, or nothing in it failed."),
        },
    )
    @action(detail=True, methods=["post"])
    def again(self, request: Request, pk: int) -> Response:
        batch = self._take(request, pk, "run")
        values = checked(AgainSerializer, request.data)
        by, now = person(request.user, "api"), timezone.now()
        if batch.kind == Batch.Kind.GRAPH:
            new = batches.again_from_failed(batch=batch, by=by, now=now)
        else:
            new = groups.run_failed_again(batch=batch, by=by, now=now, canceled=values["canceled"])
        return self._answer(request, new, status=201)


def _shown(found: Sequence[Batch]) -> list[dict[str, Any]]:
    context = {"progress": progress_of(found)}
    return [dict(BatchSerializer(batch, context=context).data) for batch in found]


@extend_schema(tags=["jobs"])
class DependenciesViewSet(ApiViewSet):
    """Which jobs a job follows."""

    serializer_class = DependenciesSerializer

    def _take(self, request: Request, pk: int, may: str = "view") -> Job:
        permitted = selectors.visible_jobs(request.user, may)
        return take(selectors.visible_jobs(request.user), permitted, pk, _("You may not schedule this job."))

    def _answer(self, request: Request, job: Job) -> Response:
        around = neighbours(job, request.user)
        return Response(
            {
                "upstreams": [neighbour_row(each) for each in around.upstreams],
                "join": job.join,
                "downstreams": [neighbour_row(each) for each in around.downstreams],
            }
        )

    @extend_schema(summary="Show what a job follows, and what follows it", responses=DependenciesSerializer)
    def retrieve(self, request: Request, job_pk: int) -> Response:
        return self._answer(request, self._take(request, job_pk))

    @extend_schema(
        summary="Say what a job follows",
        description="All of it: what is not sent is gone. Jobs that would go round in a circle are refused.",
        request=DependenciesSerializer,
        responses=DependenciesSerializer,
    )
    def update(self, request: Request, job_pk: int) -> Response:
        job = self._take(request, job_pk, "schedule")
        values = checked(DependenciesSerializer, request.data)
        upstreams = [(each["job"], each["condition"]) for each in values["upstreams"]]
        by = cast("User", request.user)
        set_dependencies(job=job, upstreams=upstreams, join=values["join"], by=by, now=timezone.now())
        return self._answer(request, job)
