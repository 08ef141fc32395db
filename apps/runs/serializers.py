"""Runs and what they leave behind, as the API shows them."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import LARGEST_KEY, AnyPageQuery, PageQuery, Strict, page_of
from apps.runs import reasons
from apps.runs.models import Run
from apps.runs.states import Level, State, Trigger


class RunSerializer(serializers.Serializer[Run]):
    """A run as lists show it."""

    id = serializers.IntegerField()
    job = serializers.IntegerField(source="job_id", allow_null=True)
    job_name = serializers.CharField()
    project = serializers.CharField(source="project.slug")
    spider = serializers.CharField(source="spider.name")
    version = serializers.CharField(source="version.name")
    state = serializers.ChoiceField(choices=State.choices)
    reason = serializers.CharField(help_text="A code for programs; empty while active and on plain success.")
    message = serializers.SerializerMethodField(help_text="The same in one sentence, in the language of the request.")
    trigger = serializers.ChoiceField(choices=Trigger.choices)
    priority = serializers.IntegerField()
    attempt = serializers.IntegerField()
    node = serializers.CharField(source="node.name", default=None, allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    queued_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    items = serializers.IntegerField()
    items_rejected = serializers.IntegerField()
    lines = serializers.IntegerField()
    warnings = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # the field of the API hides DRF's property
    requests = serializers.IntegerField()
    request_id = serializers.UUIDField()

    def get_message(self, run: Run) -> str:
        return reasons.sentence(run)


class RunDetailSerializer(RunSerializer):
    """A run with its order and results. Secret parameters are named, never shown."""

    parameters = serializers.SerializerMethodField()
    limits = serializers.DictField(source="spec.limits")
    env = serializers.DictField(source="spec.env")
    first_error_line = serializers.IntegerField(allow_null=True)
    memory_peak_bytes = serializers.IntegerField()
    memory_warning = serializers.BooleanField()
    log_damaged = serializers.BooleanField()
    stop_requested_at = serializers.DateTimeField(allow_null=True)
    progress = serializers.JSONField(allow_null=True)
    stats = serializers.DictField()
    output = serializers.SerializerMethodField(
        help_text="What the run says it made; empty without the right to its data."
    )

    def get_output(self, run: Run) -> dict[str, Any]:
        return run.output if self.context.get("with_data") else {}

    def get_parameters(self, run: Run) -> dict[str, Any]:
        return {**run.spec["parameters"], **{name: {"set": True} for name in run.spec.get("secrets", {})}}


class LogRowSerializer(serializers.Serializer[Any]):
    """A line of the log, numbered run-wide from 1."""

    line = serializers.IntegerField()
    at = serializers.DateTimeField()
    level = serializers.ChoiceField(choices=Level.choices)
    text = serializers.CharField()


class ItemSerializer(serializers.Serializer[Any]):
    """A JSON object that the run produced, numbered run-wide from 1."""

    seq = serializers.IntegerField()
    attempt = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    data = serializers.DictField()  # type: ignore[assignment]  # a name of the wire, not DRF's property


class SampleSerializer(serializers.Serializer[Any]):
    """Use of the machine at an instant."""

    at = serializers.DateTimeField()
    attempt = serializers.IntegerField()
    cpu_percent = serializers.FloatField()
    memory_bytes = serializers.IntegerField()
    memory_limit_bytes = serializers.IntegerField()
    pids = serializers.IntegerField()
    lines = serializers.IntegerField()
    items = serializers.IntegerField()


class StatesField(serializers.CharField):
    """States with commas between them."""

    def to_internal_value(self, data: Any) -> list[State]:  # type: ignore[override]  # a list is what filters take
        names = [name.strip() for name in super().to_internal_value(data).split(",")]
        if unknown := [name for name in names if name not in State.values]:
            raise ValidationError(
                _("There is no state %(name)s. States: %(known)s.")
                % {"name": ", ".join(unknown), "known": ", ".join(State.values)}
            )
        return [State(name) for name in names]


class LevelField(serializers.CharField):
    """A level by name or number."""

    def to_internal_value(self, data: Any) -> int:  # type: ignore[override]  # the number is what is compared
        word = str(data).strip().upper()
        for level in Level:
            if word in (level.name, str(level.value)):
                return int(level)
        known = ", ".join(f"{level.name} ({level.value})" for level in Level)
        raise ValidationError(_("There is no level %(name)s. Levels: %(known)s.") % {"name": word, "known": known})


class RunQuery(PageQuery):
    """Filters of the list of runs."""

    state = StatesField(required=False, help_text="One or more states with commas between them.")
    job = serializers.IntegerField(min_value=1, max_value=LARGEST_KEY, required=False, help_text="The id of a job.")
    spider = serializers.CharField(required=False, help_text="The name of a spider.")
    since = serializers.DateTimeField(required=False, help_text="Queued at this time (ISO 8601) or later.")


class LogQuery(PageQuery):
    """Which lines of a log."""

    largest_page = 10_000
    after = serializers.IntegerField(min_value=0, max_value=LARGEST_KEY, default=0, help_text="The last line seen.")
    limit = serializers.IntegerField(min_value=1, default=1000)
    level = LevelField(required=False, help_text="This level and above, by name or number.")


class ItemQuery(AnyPageQuery):
    """Which items."""

    largest_page = 1000
    after = serializers.IntegerField(min_value=0, max_value=LARGEST_KEY, default=0, help_text="The last item seen.")


class SampleQuery(Strict):
    """How many samples; of a long run every n-th."""

    limit = serializers.IntegerField(min_value=1, max_value=5000, default=1000)


RunPage = page_of(RunSerializer, "RunPage")
LogPage = page_of(LogRowSerializer, "LogPage")
ItemPage = page_of(ItemSerializer, "ItemPage")
SamplePage = page_of(SampleSerializer, "SamplePage")
