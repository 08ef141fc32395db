"""Runs over the REST API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.rights import can
from apps.core.actors import person
from apps.core.downloads import Download
from apps.core.rest import ApiViewSet, ErrorSerializer, checked, checked_query, next_address, page, page_answer, take
from apps.runs import actions, selectors
from apps.runs.models import Item, Run
from apps.runs.reruns import rerun_changed
from apps.runs.serializers.runs import (
    AttemptPage,
    AttemptQuery,
    AttemptSerializer,
    BulkAnswer,
    BulkSerializer,
    EventPage,
    EventQuery,
    EventSerializer,
    ItemPage,
    ItemQuery,
    ItemSerializer,
    LogPage,
    LogQuery,
    LogRowSerializer,
    OutcomeSerializer,
    RerunSerializer,
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
        return take(seen, permitted, pk, actions.refusals().get(may, ""))

    def _act(self, request: Request, pk: int, action: str) -> Response:
        run = self._take(request, pk, actions.RIGHTS[action])
        actions.perform(action, run=run, by=person(request.user, "api"), now=timezone.now(), trigger=Trigger.API)
        return Response(detail_of(self._take(request, pk), request))

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
        if "batch" in query:
            runs = runs.filter(batch_id=query["batch"])
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
        return self._act(request, pk, "stop")

    @extend_schema(
        summary="Kill a run",
        description="The second step of a stop: no more grace. A run that nobody asked to stop is asked now.",
        request=None,
        responses={200: RunDetailSerializer, 409: OpenApiResponse(ErrorSerializer, "The run is over already.")},
    )
    @action(detail=True, methods=["post"])
    def kill(self, request: Request, pk: int) -> Response:
        return self._act(request, pk, "kill")

    @extend_schema(
        summary="Pause a run",
        description="Freezes a running run; its time limits stand still. Asking again changes nothing. Its state is "
        "`paused` when it is proven frozen.",
        request=None,
        responses={200: RunDetailSerializer, 409: OpenApiResponse(ErrorSerializer, "The run does not run.")},
    )
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: int) -> Response:
        return self._act(request, pk, "pause")

    @extend_schema(
        summary="Let a paused run go on",
        request=None,
        responses={200: RunDetailSerializer, 409: OpenApiResponse(ErrorSerializer, "The run is not paused.")},
    )
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: int) -> Response:
        return self._act(request, pk, "resume")

    @extend_schema(
        summary="Run the same order again",
        description="Same version and limits. `parameters`, if sent, are laid over those of the run and checked.",
        request=RerunSerializer,
        responses={201: RunDetailSerializer},
    )
    @action(detail=True, methods=["post"])
    def rerun(self, request: Request, pk: int) -> Response:
        run = self._take(request, pk, "run")
        values = checked(RerunSerializer, request.data)
        by, now = person(request.user, "api"), timezone.now()
        if "parameters" in values:
            again = rerun_changed(run=run, by=by, now=now, trigger=Trigger.API, parameters=values["parameters"])
        else:
            again = actions.perform("rerun", run=run, by=by, now=now, trigger=Trigger.API)
        return Response(detail_of(again, request), status=201)

    @extend_schema(
        summary="Do the same with many runs",
        description="Each by itself: what one refuses does not hinder the others. A run that does not exist or may not "
        "be seen is `not_found`.",
        request=BulkSerializer,
        responses=BulkAnswer,
    )
    @action(detail=False, methods=["post"])
    def bulk(self, request: Request) -> Response:
        values = checked(BulkSerializer, request.data)
        outcomes = actions.perform_on_all(
            values["action"],
            user=request.user,
            ids=values["ids"],
            by=person(request.user, "api"),
            now=timezone.now(),
            trigger=Trigger.API,
        )
        return Response({"results": [OutcomeSerializer(outcome).data for outcome in outcomes]})

    @extend_schema(summary="List the attempts, first to last", responses=AttemptPage)
    @action(detail=True)
    def attempts(self, request: Request, pk: int) -> Response:
        run = self._take(request, pk)
        rows = [AttemptSerializer(each, context={"run": run}).data for each in selectors.attempts(run)]
        return Response({"results": rows, "next": None})

    @extend_schema(summary="Read what happened, oldest first", parameters=[EventQuery], responses=EventPage)
    @action(detail=True)
    def events(self, request: Request, pk: int) -> Response:
        query = checked_query(EventQuery, request)
        own = selectors.events(self._take(request, pk)).order_by()
        rows, following = page(request, own, key="id", after=query["after"], limit=query["limit"])
        return page_answer(EventSerializer, rows, following)

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

    @extend_schema(
        summary="Download the log as text",
        parameters=[AttemptQuery],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def log_txt(self, request: Request, pk: int) -> HttpResponseBase:
        run = self._take(request, pk, "view_log")
        attempt = checked_query(AttemptQuery, request).get("attempt")
        return Download(
            selectors.log_text(run, attempt=attempt),
            filename=f"{selectors.file_stem(run, attempt)}.log",
            content_type="text/plain; charset=utf-8",
            attachment=False,
        )

    @extend_schema(summary="Read the items", parameters=[ItemQuery], responses=ItemPage)
    @action(detail=True)
    def items(self, request: Request, pk: int) -> Response:
        query = checked_query(ItemQuery, request)
        rows, more = _item_rows(
            self._take(request, pk, "view_data"), query["after"], query["limit"], query.get("attempt")
        )
        following = next_address(request, rows[-1].seq) if more else None
        return page_answer(ItemSerializer, rows, following)

    @extend_schema(
        summary="Download the items as JSON lines",
        parameters=[AttemptQuery],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def items_jsonl(self, request: Request, pk: int) -> HttpResponseBase:
        run = self._take(request, pk, "export_data")
        attempt = checked_query(AttemptQuery, request).get("attempt")
        parts, name = selectors.items_jsonl(run, attempt=attempt), f"{selectors.file_stem(run, attempt)}-items.jsonl"
        return Download(parts, filename=name, content_type="application/x-ndjson")

    @extend_schema(
        summary="Download the items as CSV",
        description="Cells that a spreadsheet would take for a formula begin with an apostrophe.",
        parameters=[AttemptQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def items_csv(self, request: Request, pk: int) -> HttpResponseBase:
        run = self._take(request, pk, "export_data")
        attempt = checked_query(AttemptQuery, request).get("attempt")
        parts, name = selectors.items_csv(run, attempt=attempt), f"{selectors.file_stem(run, attempt)}-items.csv"
        return Download(parts, filename=name, content_type="text/csv; charset=utf-8")

    @extend_schema(summary="Read the use of CPU and memory", parameters=[SampleQuery], responses=SamplePage)
    @action(detail=True)
    def samples(self, request: Request, pk: int) -> Response:
        query = checked_query(SampleQuery, request)
        rows = selectors.samples(self._take(request, pk), limit=query["limit"])
        return page_answer(SampleSerializer, rows, None)


def _item_rows(run: Run, after: int, limit: int, attempt: int | None) -> tuple[list[Item], bool]:
    """Up to `limit` items, fewer when they are large, and whether there are more."""
    rows: list[Item] = []
    size = 0
    while True:
        most = min(_ITEM_BATCH, limit + 1 - len(rows))
        batch = selectors.item_page(run, after=after, limit=most, attempt=attempt)
        for item in batch:
            if len(rows) >= limit or size > ITEM_PAGE_BYTES:
                return rows, True
            rows.append(item)
            size += len(json.dumps(item.data))
        if not batch:
            return rows, False
        after = batch[-1].seq
