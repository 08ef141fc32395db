"""Runs and what they leave behind, as the API shows them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import LARGEST_KEY, AnyPageQuery, PageQuery, Strict, page_of
from apps.runs import actions, reasons
from apps.runs.models import Attempt, Run, RunEvent
from apps.runs.selectors import attempt_state
from apps.runs.services import why_waiting
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
    items_discarded = serializers.IntegerField(help_text="Replaced by those of a later attempt.")
    retry_at = serializers.DateTimeField(allow_null=True, help_text="When the next attempt is due.")
    paused_at = serializers.DateTimeField(allow_null=True)
    batch = serializers.IntegerField(source="batch_id", allow_null=True)

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
    waiting = serializers.SerializerMethodField(
        help_text="Why it does not start yet, in one sentence; empty otherwise."
    )
    stop_requested_at = serializers.DateTimeField(allow_null=True)
    kill_requested_at = serializers.DateTimeField(allow_null=True)
    pause_requested_at = serializers.DateTimeField(allow_null=True)
    progress = serializers.JSONField(allow_null=True)
    stats = serializers.DictField()
    output = serializers.SerializerMethodField(
        help_text="What the run says it made; empty without the right to its data."
    )

    def get_output(self, run: Run) -> dict[str, Any]:
        return run.output if self.context.get("with_data") else {}

    def get_waiting(self, run: Run) -> str:
        return why_waiting(run, timezone.now())

    def get_parameters(self, run: Run) -> dict[str, Any]:
        return {**run.spec["parameters"], **{name: {"set": True} for name in run.spec.get("secrets", {})}}


class AttemptSerializer(serializers.Serializer[Attempt]):
    """One container or process of a run."""

    number = serializers.IntegerField()
    state = serializers.SerializerMethodField()
    reason = serializers.CharField()
    message = serializers.SerializerMethodField(help_text="Why it ended, in one sentence.")
    exit_code = serializers.IntegerField(allow_null=True)
    node = serializers.CharField(source="node.name")
    executor = serializers.CharField()
    image = serializers.CharField(source="environment", help_text="The image, or the interpreter of a plain process.")
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    lines = serializers.IntegerField()
    items = serializers.IntegerField()
    items_discarded = serializers.BooleanField()
    infrastructure = serializers.BooleanField(help_text="It failed through no fault of the spider.")

    @extend_schema_field(serializers.ChoiceField(choices=State.choices))
    def get_state(self, attempt: Attempt) -> str:
        return attempt_state(self.context["run"], attempt)

    def get_message(self, attempt: Attempt) -> str:
        return reasons.sentence(attempt)


class EventSerializer(serializers.Serializer[RunEvent]):
    """A change of state, or a note: a kill or pause asked for, another worker taking over, …"""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="`state` for a change of state.")
    from_state = serializers.CharField()
    to_state = serializers.CharField()
    attempt = serializers.IntegerField()
    reason = serializers.CharField()
    message = serializers.SerializerMethodField(help_text="The reason in one sentence.")
    detail = serializers.DictField()
    actor = serializers.CharField()

    def get_message(self, event: RunEvent) -> str:
        return reasons.sentence(event)


class RerunSerializer(Strict):
    """What is different this time."""

    parameters = serializers.DictField(required=False, help_text="Laid over those of the run.")


class BulkSerializer(Strict):
    """One action for many runs."""

    action = serializers.ChoiceField(choices=list(actions.RIGHTS))
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_KEY),
        allow_empty=False,
        max_length=actions.MOST_AT_ONCE,
    )


class OutcomeSerializer(serializers.Serializer[actions.Outcome]):
    """What became of one of them."""

    id = serializers.IntegerField(help_text="As it was asked for.")
    ok = serializers.SerializerMethodField()
    run = serializers.IntegerField(source="run.pk", default=None, allow_null=True, help_text="The run, or the new one.")
    state = serializers.CharField(source="run.state", default=None, allow_null=True)
    code = serializers.CharField(source="error.code", default="", help_text="Why not, for programs.")
    detail = serializers.CharField(source="error.message", default="", help_text="Why not, in a sentence.")

    def get_ok(self, outcome: actions.Outcome) -> bool:
        return outcome.error is None


class BulkAnswer(serializers.Serializer[Any]):
    """One result for each run, in the order asked."""

    results = OutcomeSerializer(many=True)


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
    batch = serializers.IntegerField(min_value=1, max_value=LARGEST_KEY, required=False, help_text="Of this batch.")
    since = serializers.DateTimeField(required=False, help_text="Queued at this time (ISO 8601) or later.")


class AttemptQuery(Strict):
    """Of which attempt; all of them without it."""

    attempt = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False, help_text="Only this attempt.")


class EventQuery(PageQuery):
    """Which events."""

    largest_page = 1000
    after = serializers.IntegerField(min_value=0, max_value=LARGEST_KEY, default=0, help_text="The last event seen.")
    limit = serializers.IntegerField(min_value=1, default=200)


class LogQuery(AttemptQuery, PageQuery):
    """Which lines of a log."""

    largest_page = 10_000
    after = serializers.IntegerField(min_value=0, max_value=LARGEST_KEY, default=0, help_text="The last line seen.")
    limit = serializers.IntegerField(min_value=1, default=1000)
    level = LevelField(required=False, help_text="This level and above, by name or number.")


class ItemQuery(AttemptQuery, AnyPageQuery):
    """Which items."""

    largest_page = 1000
    after = serializers.IntegerField(min_value=0, max_value=LARGEST_KEY, default=0, help_text="The last item seen.")


class SampleQuery(Strict):
    """How many samples; of a long run every n-th."""

    limit = serializers.IntegerField(min_value=1, max_value=5000, default=1000)


RunPage = page_of(RunSerializer, "RunPage")
LogPage = page_of(LogRowSerializer, "LogPage")
ItemPage = page_of(ItemSerializer, "ItemPage")
EventPage = page_of(EventSerializer, "EventPage")
AttemptPage = page_of(AttemptSerializer, "AttemptPage")
SamplePage = page_of(SampleSerializer, "SamplePage")
