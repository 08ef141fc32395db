"""Runs over the REST API. A run is asked for through its job: see apps.jobs.api."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.rights import can
from apps.core.actors import person
from apps.core.downloads import Download
from apps.core.rest import ApiViewSet, ErrorSerializer, checked_query, next_address, page, page_answer, take
from apps.runs import selectors, services
from apps.runs.models import Item, Run
from apps.runs.serializers import (
    ItemPage,
    ItemQuery,
    ItemSerializer,
    LogPage,
    LogQuery,
    LogRowSerializer,
    RunDetailSerializer,
    RunPage,
    RunQuery,
    RunSerializer,
    SamplePage,
    SampleQuery,
    SampleSerializer,
)
from apps.runs.states import Trigger

ITEM_PAGE_BYTES = 4 * 1024 * 1024
_ITEM_BATCH = 25
# Not shown in lists, and each may be large.
_LARGE = ("spec", "stats", "output", "progress")


def refusals() -> dict[str, str]:
    """Why a run that may be seen is refused, by action."""
    return {
        "view_log": _("You may not read the log of this run."),
        "view_data": _("You may not see the data of this run."),
        "export_data": _("You may not download the data of this run."),
        "stop": _("You may not stop this run."),
        "run": _("You may not start this run again."),
    }


def detail_of(run: Run, request: Request) -> dict[str, Any]:
    """All of a run that the caller may see."""
    with_data = bool(run.output) and can(request.user, "view_data", run)
    return dict(RunDetailSerializer(run, context={"with_data": with_data}).data)


@extend_schema(tags=["runs"])
class RunViewSet(ApiViewSet):
    """Runs the caller may see, with log, data and use of resources."""

    serializer_class = RunSerializer
    lookup_value_converter = "int"

    def _runs(self, request: Request, may: str = "view") -> QuerySet[Run]:
        return selectors.visible_runs(request.user, may).select_related("project", "spider", "version", "node")

    def _take(self, request: Request, pk: int, may: str = "view") -> Run:
        seen = self._runs(request)
        permitted = seen if may == "view" else selectors.visible_runs(request.user, may)
        return take(seen, permitted, pk, refusals().get(may, ""))

    @extend_schema(summary="List runs, newest first", parameters=[RunQuery], responses=RunPage)
    def list(self, request: Request) -> Response:
        query = checked_query(RunQuery, request)
        runs = self._runs(request).defer(*_LARGE)
        if "state" in query:
            runs = runs.filter(state__in=query["state"])
        if "job" in query:
            runs = runs.filter(job_id=query["job"])
        if "spider" in query:
            runs = runs.filter(spider__name=query["spider"])
        if "since" in query:
            runs = runs.filter(queued_at__gte=query["since"])
        rows, following = page(request, runs, key="-id", after=query["after"], limit=query["limit"])
        return page_answer(RunSerializer, rows, following)

    @extend_schema(summary="Show a run", responses=RunDetailSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(detail_of(self._take(request, pk), request))

    @extend_schema(
        summary="Stop a run",
        description="Asks once; asking again changes nothing. The run is over when its process is proven gone.",
        request=None,
        responses={200: RunDetailSerializer, 409: OpenApiResponse(ErrorSerializer, "The run is over already.")},
    )
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: int) -> Response:
        run = self._take(request, pk, "stop")
        services.request_stop(run=run, by=person(request.user, "api"), now=timezone.now())
        return Response(detail_of(self._take(request, pk), request))

    @extend_schema(summary="Run the same order again", request=None, responses={201: RunDetailSerializer})
    @action(detail=True, methods=["post"])
    def rerun(self, request: Request, pk: int) -> Response:
        run = self._take(request, pk, "run")
        again = services.rerun(run=run, by=person(request.user, "api"), now=timezone.now(), trigger=Trigger.API)
        return Response(detail_of(again, request), status=201)

    @extend_schema(
        summary="Read the log",
        description="`next` is null at the last stored line; for more of an active run ask again with `after`.",
        parameters=[LogQuery],
        responses=LogPage,
    )
    @action(detail=True)
    def log(self, request: Request, pk: int) -> Response:
        query = checked_query(LogQuery, request)
        found = selectors.log_page(self._take(request, pk, "view_log"), **query)
        rows = [
            {"line": line, "at": datetime.fromtimestamp(at_ms / 1000, UTC), "level": level, "text": text}
            for line, at_ms, level, text in found.rows
        ]
        following = None if found.complete else next_address(request, found.scanned)
        return page_answer(LogRowSerializer, rows, following)

    @extend_schema(summary="Download the log as text", responses={(200, "text/plain"): OpenApiTypes.STR})
    def log_txt(self, request: Request, pk: int) -> HttpResponseBase:
        run = self._take(request, pk, "view_log")
        return Download(
            selectors.log_text(run),
            filename=f"run-{run.pk}.log",
            content_type="text/plain; charset=utf-8",
            attachment=False,
        )

    @extend_schema(summary="Read the items", parameters=[ItemQuery], responses=ItemPage)
    @action(detail=True)
    def items(self, request: Request, pk: int) -> Response:
        query = checked_query(ItemQuery, request)
        rows, more = _item_rows(self._take(request, pk, "view_data"), query["after"], query["limit"])
        following = next_address(request, rows[-1].seq) if more else None
        return page_answer(ItemSerializer, rows, following)

    @extend_schema(
        summary="Download the items as JSON lines", responses={(200, "application/x-ndjson"): OpenApiTypes.STR}
    )
    def items_jsonl(self, request: Request, pk: int) -> HttpResponseBase:
        run = self._take(request, pk, "export_data")
        return Download(
            selectors.items_jsonl(run), filename=f"run-{run.pk}-items.jsonl", content_type="application/x-ndjson"
        )

    @extend_schema(
        summary="Download the items as CSV",
        description="Cells that a spreadsheet would take for a formula begin with an apostrophe.",
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def items_csv(self, request: Request, pk: int) -> HttpResponseBase:
        run = self._take(request, pk, "export_data")
        parts = selectors.items_csv(run)
        return Download(parts, filename=f"run-{run.pk}-items.csv", content_type="text/csv; charset=utf-8")

    @extend_schema(summary="Read the use of CPU and memory", parameters=[SampleQuery], responses=SamplePage)
    @action(detail=True)
    def samples(self, request: Request, pk: int) -> Response:
        query = checked_query(SampleQuery, request)
        rows = selectors.samples(self._take(request, pk), limit=query["limit"])
        return page_answer(SampleSerializer, rows, None)


def _item_rows(run: Run, after: int, limit: int) -> tuple[list[Item], bool]:
    """Up to `limit` items, fewer when they are large, and whether there are more."""
    rows: list[Item] = []
    size = 0
    while True:
        batch = selectors.item_page(run, after=after, limit=min(_ITEM_BATCH, limit + 1 - len(rows)))
        for item in batch:
            if len(rows) >= limit or size > ITEM_PAGE_BYTES:
                return rows, True
            rows.append(item)
            size += len(json.dumps(item.data))
        if not batch:
            return rows, False
        after = batch[-1].seq
