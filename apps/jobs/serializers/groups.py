"""Groups of runs as the API shows and takes them."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import PageQuery, Strict, page_of
from apps.jobs.services import groups
from apps.runs.models import Batch

AT_ONCE = {"min_value": 1, "max_value": groups.MOST_AT_ONCE, "default": groups.DEFAULT_CONCURRENCY}


class ProgressSerializer(serializers.Serializer[Any]):
    """How many of its runs are how far."""

    total = serializers.IntegerField()
    over = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Failed, timed out or lost.")
    waiting = serializers.IntegerField(help_text="For their turn.")
    under_way = serializers.IntegerField(help_text="Queued, running or between two attempts.")
    states = serializers.DictField(child=serializers.IntegerField())


class GroupSerializer(serializers.Serializer[Batch]):
    """A backfill or a table of inputs. Its runs are those with its number as `batch`."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    name = serializers.CharField()
    job = serializers.IntegerField(source="job_id", allow_null=True)
    schedule = serializers.IntegerField(source="schedule_id", allow_null=True)
    concurrency = serializers.IntegerField(allow_null=True)
    progress = serializers.SerializerMethodField()
    requested_by = serializers.CharField(source="actor")
    created_at = serializers.DateTimeField()
    canceled_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    origin = serializers.IntegerField(source="origin_id", allow_null=True, help_text="Whose failed runs it repeats.")

    def get_progress(self, batch: Batch) -> ProgressSerializer:
        return ProgressSerializer(self.context["progress"][batch.pk]).data  # type: ignore[return-value]  # for OpenAPI


GroupPage = page_of(GroupSerializer, "GroupPage")


class GroupQuery(PageQuery):
    """Pages of groups."""


class BackfillSerializer(Strict):
    """Which times of a schedule are made up for."""

    schedule = serializers.IntegerField(help_text="One of the job's schedules.")
    start = serializers.DateTimeField(required=False, default_timezone=UTC, help_text="Included.")
    end = serializers.DateTimeField(required=False, default_timezone=UTC, help_text="Included; not in the future.")
    instants = serializers.ListField(
        child=serializers.DateTimeField(default_timezone=UTC),
        required=False,
        max_length=groups.MOST_RUNS,
        help_text="These of the schedule's times only.",
    )
    again = serializers.BooleanField(default=False, help_text="Also those that have a run already.")
    concurrency = serializers.IntegerField(**AT_ONCE, help_text="The most of its runs at once.")  # type: ignore[arg-type]  # bounds
    priority = serializers.IntegerField(
        required=False,
        allow_null=True,
        validators=[MinValueValidator(1), MaxValueValidator(9)],
        help_text="Null: less urgent than the job.",
    )
    preview = serializers.BooleanField(default=False, help_text="Only say which times these are.")


class DueTimeSerializer(serializers.Serializer[Any]):
    """A time of the range, and the run that stands for it already."""

    at = serializers.DateTimeField(default_timezone=UTC)
    run = serializers.IntegerField(source="run.pk", default=None, allow_null=True)
    state = serializers.CharField(source="run.state", default=None, allow_null=True)


class BackfillPreviewSerializer(serializers.Serializer[Any]):
    """The times that a start would take into account."""

    times = DueTimeSerializer(many=True)


class InputsSerializer(Strict):
    """A table: as rows, or as the text of a CSV or TSV file whose first line names the columns."""

    rows = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text='Such as [{"keyword": "sea"}]; typed as parameters are.',
    )
    csv = serializers.CharField(
        required=False,
        trim_whitespace=False,
        help_text="Cells are typed by the schema; an empty one is as the job has it.",
    )
    column = serializers.CharField(
        default="", allow_blank=True, help_text="csv: the parameter of a list of values without a first line."
    )
    name = serializers.CharField(default="", allow_blank=True, max_length=200)
    concurrency = serializers.IntegerField(**AT_ONCE, help_text="The most of its runs at once.")  # type: ignore[arg-type]  # bounds

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("rows" in attrs) == ("csv" in attrs):
            raise ValidationError({"rows": [_("Send either rows or csv.")]})
        return attrs


class AgainSerializer(Strict):
    """What is run again."""

    canceled = serializers.BooleanField(default=False, help_text="Also what was canceled.")
