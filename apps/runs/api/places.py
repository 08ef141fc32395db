"""Nodes and pools over the REST API: everybody who is signed in sees them, staff with the permission changes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.rights import may_change
from apps.core.actors import person
from apps.core.errors import Forbidden, NotFound
from apps.core.rest import ApiViewSet, ErrorSerializer, PageQuery, checked, checked_query, page, page_answer
from apps.runs import places, selectors
from apps.runs.models import Node, Pool
from apps.runs.serializers.places import (
    DeletePoolQuery,
    DrainSerializer,
    LabelsSerializer,
    NodePage,
    NodeSerializer,
    PoolPage,
    PoolSerializer,
    pool_row,
)


def _demand(request: Request, model: type[Model], how: str = "change") -> None:
    if not may_change(request.user, model, how):
        raise Forbidden(_("You may not change this: it takes a member of staff with the permission."))


def _node_answer(node: Node) -> Response:
    return Response(NodeSerializer(selectors.nodes_at_a_glance(now=timezone.now(), nodes=[node])[0]).data)


@extend_schema(tags=["nodes"])
class NodeViewSet(ApiViewSet):
    """The machines that run things."""

    serializer_class = NodeSerializer
    lookup_value_converter = "int"

    def _node(self, pk: int) -> Node:
        found = Node.objects.filter(pk=pk).first()
        if found is None:
            raise NotFound(_("There is no such object."))
        return found

    def _change(self, request: Request, pk: int, change: Callable[..., None], **values: Any) -> Response:
        node = self._node(pk)
        _demand(request, Node)
        change(node=node, by=person(request.user, "api"), now=timezone.now(), **values)
        return _node_answer(node)

    @extend_schema(summary="List nodes", parameters=[PageQuery], responses=NodePage)
    def list(self, request: Request) -> Response:
        query = checked_query(PageQuery, request)
        rows, following = page(request, Node.objects.all(), key="id", after=query["after"], limit=query["limit"])
        return page_answer(NodeSerializer, selectors.nodes_at_a_glance(now=timezone.now(), nodes=rows), following)

    @extend_schema(summary="Show a node", responses=NodeSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return _node_answer(self._node(pk))

    @extend_schema(
        summary="Close a node",
        description="Nothing new starts there; what runs goes on.",
        request=None,
        responses=NodeSerializer,
    )
    @action(detail=True, methods=["post"])
    def cordon(self, request: Request, pk: int) -> Response:
        return self._change(request, pk, places.cordon)

    @extend_schema(summary="Open a node again", description="Ends a drain too.", request=None, responses=NodeSerializer)
    @action(detail=True, methods=["post"])
    def uncordon(self, request: Request, pk: int) -> Response:
        return self._change(request, pk, places.uncordon)

    @extend_schema(
        summary="Drain a node",
        description="Closes it; what still runs after `within` is stopped and started again on another node.",
        request=DrainSerializer,
        responses=NodeSerializer,
    )
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, pk: int) -> Response:
        values = checked(DrainSerializer, request.data) if may_change(request.user, Node) else {"within": 0}
        return self._change(request, pk, places.drain, within=_span(values["within"]))

    @extend_schema(
        summary="End the drain of a node",
        description="Its runs go on; it stays closed for new ones.",
        request=None,
        responses=NodeSerializer,
    )
    @action(detail=True, methods=["post"], url_path="end-drain")
    def end_drain(self, request: Request, pk: int) -> Response:
        return self._change(request, pk, places.end_drain)

    @extend_schema(
        summary="Set the labels of a node",
        description="All of them: those that are not sent are gone.",
        request=LabelsSerializer,
        responses=NodeSerializer,
    )
    @action(detail=True, methods=["post"])
    def labels(self, request: Request, pk: int) -> Response:
        values = checked(LabelsSerializer, request.data) if may_change(request.user, Node) else {"labels": {}}
        return self._change(request, pk, places.set_labels, labels=values["labels"])


def _span(seconds: int) -> timedelta:
    """Any number is a span; the service says which are sensible."""
    return timedelta(seconds=max(-1, min(seconds, 10**9)))


@extend_schema(tags=["pools"])
class PoolViewSet(ApiViewSet):
    """Limits that jobs share."""

    serializer_class = PoolSerializer
    lookup_value_converter = "int"

    def _pool(self, pk: int) -> Pool:
        found = Pool.objects.filter(pk=pk).first()
        if found is None:
            raise NotFound(_("There is no such object."))
        return found

    def _answer(self, pool: Pool, status: int = 200) -> Response:
        return Response(pool_row(selectors.pools_at_a_glance([pool])[0]), status=status)

    @extend_schema(summary="List pools", parameters=[PageQuery], responses=PoolPage)
    def list(self, request: Request) -> Response:
        query = checked_query(PageQuery, request)
        rows, following = page(request, Pool.objects.all(), key="id", after=query["after"], limit=query["limit"])
        glances = {glance.pool.pk: glance for glance in selectors.pools_at_a_glance(rows)}
        return Response({"results": [pool_row(glances[pool.pk]) for pool in rows], "next": following})

    @extend_schema(summary="Show a pool", responses=PoolSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return self._answer(self._pool(pk))

    @extend_schema(summary="Make a pool", request=PoolSerializer, responses={201: PoolSerializer})
    def create(self, request: Request) -> Response:
        _demand(request, Pool, "add")
        values = checked(PoolSerializer, request.data)
        pool = places.create_pool(by=person(request.user, "api"), now=timezone.now(), **values)
        return self._answer(pool, status=201)

    @extend_schema(summary="Change a pool, naming it in full", request=PoolSerializer, responses=PoolSerializer)
    def update(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, partial=False)

    @extend_schema(summary="Change some of a pool", request=PoolSerializer, responses=PoolSerializer)
    def partial_update(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, partial=True)

    def _changed(self, request: Request, pk: int, *, partial: bool) -> Response:
        pool = self._pool(pk)
        _demand(request, Pool)
        reader = PoolSerializer(data=request.data, partial=partial)
        reader.is_valid(raise_exception=True)
        by, now = person(request.user, "api"), timezone.now()
        return self._answer(places.update_pool(pool=pool, by=by, now=now, **reader.validated_data))

    @extend_schema(
        summary="Delete a pool",
        parameters=[DeletePoolQuery],
        responses={204: None, 409: OpenApiResponse(ErrorSerializer, "Jobs use it, and `detach` was not sent.")},
    )
    def destroy(self, request: Request, pk: int) -> Response:
        pool = self._pool(pk)
        _demand(request, Pool, "delete")
        detach = checked_query(DeletePoolQuery, request)["detach"]
        places.delete_pool(pool=pool, by=person(request.user, "api"), now=timezone.now(), detach=detach)
        return Response(status=204)
