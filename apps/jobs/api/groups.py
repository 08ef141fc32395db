"""Groups of runs over the REST API: backfills, tables of inputs, and all their data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.actors import Actor, person
from apps.core.downloads import Download
from apps.core.errors import Invalid, PanelError
from apps.core.rest import ApiViewSet, ErrorSerializer, checked, checked_query, page, take
from apps.jobs import selectors
from apps.jobs.models import Job, Schedule
from apps.jobs.serializers.groups import (
    BackfillPreviewSerializer,
    BackfillSerializer,
    GroupPage,
    GroupQuery,
    GroupSerializer,
    InputsSerializer,
)
from apps.jobs.services import groups
from apps.runs.models import Batch
from apps.runs.selectors import groups as reads
from apps.runs.selectors.batches import visible_batches

REFUSED = OpenApiResponse(ErrorSerializer, "Nothing was started; `fields` say what does not fit, by row and parameter.")


def shown(batches: Sequence[Batch]) -> list[dict[str, Any]]:
    """With their progress, in one statement."""
    context = {"progress": reads.progress_of(batches)}
    return [dict(GroupSerializer(batch, context=context).data) for batch in batches]


class GroupViewSet(ApiViewSet):
    """What both kinds share."""

    serializer_class = GroupSerializer
    lookup_value_converter = "int"
    # To start one is to run the job.
    token_scope = "run"  # noqa: S105 (a word)
    kind: str

    def _job(self, request: Request, pk: int, *rights: str) -> Job:
        permitted = selectors.visible_jobs(request.user)
        for right in rights:
            permitted = permitted.filter(pk__in=selectors.visible_jobs(request.user, right).order_by().values("pk"))
        return take(selectors.visible_jobs(request.user), permitted, pk, _("You may not do this with this job."))

    def _page(self, request: Request, job_pk: int) -> Response:
        job = self._job(request, job_pk)
        query = checked_query(GroupQuery, request)
        found: QuerySet[Batch] = reads.groups_of(job.pk, self.kind)
        rows, following = page(request, found, key="-id", after=query["after"], limit=query["limit"])
        return Response({"results": shown(rows), "next": following})


@extend_schema(tags=["groups"])
class BackfillViewSet(GroupViewSet):
    """Runs for times of a schedule that lie back."""

    kind = Batch.Kind.BACKFILL

    @extend_schema(summary="List backfills, newest first", parameters=[GroupQuery], responses=GroupPage)
    def list(self, request: Request, job_pk: int) -> Response:
        return self._page(request, job_pk)

    @extend_schema(
        summary="Start a backfill",
        description="One run for each time of the range that has none yet; dates in templates are of that time. With "
        "`preview` nothing is started.",
        request=BackfillSerializer,
        responses={201: GroupSerializer, 200: BackfillPreviewSerializer, 400: REFUSED},
    )
    def create(self, request: Request, job_pk: int) -> Response:
        job = self._job(request, job_pk, "schedule", "run")
        values = checked(BackfillSerializer, request.data)
        schedule, now = _schedule_of(job, values.pop("schedule")), timezone.now()
        if values.pop("preview"):
            return Response(BackfillPreviewSerializer({"times": _preview(schedule, values, now)}).data)
        batch = groups.start_backfill(schedule=schedule, by=person(request.user, "api"), now=now, **values)
        return Response(shown([batch])[0], status=201)


def _schedule_of(job: Job, pk: int) -> Schedule:
    found = selectors.schedules_of(job).filter(pk=pk).first()
    if found is None:
        sentence = _("The job has no such schedule.")
        raise Invalid(sentence, fields={"schedule": [sentence]})
    return found


def _preview(schedule: Schedule, values: dict[str, Any], now: datetime) -> list[groups.DueTime]:
    start, end = values.get("start"), values.get("end")
    if start is None or end is None:
        sentence = _("Say from when to when.")
        missing = [name for name, value in (("start", start), ("end", end)) if value is None]
        raise Invalid(sentence, fields={name: [sentence] for name in missing})
    return groups.preview_backfill(schedule=schedule, start=start, end=end, now=now)


@extend_schema(tags=["groups"])
class InputsViewSet(GroupViewSet):
    """One run of a job for each row of a table."""

    kind = Batch.Kind.INPUTS

    @extend_schema(summary="List tables of inputs, newest first", parameters=[GroupQuery], responses=GroupPage)
    def list(self, request: Request, job_pk: int) -> Response:
        return self._page(request, job_pk)

    @extend_schema(
        summary="Run a table of inputs",
        description="Each row is laid over the parameters of the job. Nothing starts unless all rows fit; faults are "
        "named `rows.<number from 1>.<parameter>`.",
        request=InputsSerializer,
        responses={201: GroupSerializer, 400: REFUSED},
    )
    def create(self, request: Request, job_pk: int) -> Response:
        job = self._job(request, job_pk, "run")
        values = checked(InputsSerializer, request.data)
        by, now = person(request.user, "api"), timezone.now()
        with _faults_of_csv():
            rows = values["rows"] if "rows" in values else _rows_of(job, values, by, now)
        batch = groups.start_inputs(
            job=job, rows=rows, by=by, now=now, concurrency=values["concurrency"], name=values["name"]
        )
        return Response(shown([batch])[0], status=201)


@contextmanager
def _faults_of_csv() -> Iterator[None]:
    """What the reader of tables calls a table stands under `csv` in a body."""
    try:
        yield
    except PanelError as error:
        error.fields = {"csv" if name == "table" else name: said for name, said in error.fields.items()}
        raise


def _rows_of(job: Job, values: dict[str, Any], by: Actor, now: datetime) -> Sequence[dict[str, Any]]:
    table = groups.table_of_inputs(job=job, text=values["csv"], column=values["column"], by=by, now=now)
    if table.faults:
        raise Invalid(next(iter(table.faults.values()))[0], fields=table.faults)
    return table.values


@extend_schema(tags=["batches"])
class GroupDataViewSet(ApiViewSet):
    """All items of all runs of a batch."""

    serializer_class = GroupSerializer

    def _batch(self, request: Request, pk: int) -> Batch:
        permitted = visible_batches(request.user, "export_data")
        return take(visible_batches(request.user), permitted, pk, _("You may not take away data of this job."))

    @extend_schema(
        summary="Download the items of all runs as CSV",
        description="The number of the run, the values of its row as `input.<name>`, then the item. Cells that a "
        "spreadsheet would take for a formula begin with an apostrophe.",
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def items_csv(self, request: Request, pk: int) -> HttpResponseBase:
        batch = self._batch(request, pk)
        parts = reads.items_csv(batch, request.user)
        return Download(parts, filename=f"batch-{batch.pk}-items.csv", content_type="text/csv; charset=utf-8")

    @extend_schema(
        summary="Download the items of all runs as JSON lines",
        description='Each line is {"run": …, "row": …, "input": {…}, "item": {…}}.',
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def items_jsonl(self, request: Request, pk: int) -> HttpResponseBase:
        batch = self._batch(request, pk)
        parts = reads.items_jsonl(batch, request.user)
        return Download(parts, filename=f"batch-{batch.pk}-items.jsonl", content_type="application/x-ndjson")
