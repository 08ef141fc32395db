"""Schedules and the ledger of due times, as the API shows and takes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import LARGEST_KEY, AnyPageQuery, PageQuery, Strict, page_of
from apps.jobs import reasons, selectors
from apps.jobs.models import Clock, Firing, Misfire, Outcome, Schedule, ScheduleType
from apps.jobs.serializers.jobs import SpanField
from apps.jobs.timing import BadRule, words

# Beyond, sums of times leave the calendar.
YEARS = range(1970, 9000)


class InstantField(serializers.DateTimeField):
    """An instant; without a zone it is taken as UTC."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)

    def to_internal_value(self, value: Any) -> datetime:
        found = super().to_internal_value(value)
        if found.year not in YEARS:
            raise ValidationError(_("This is too far away."))
        return found


class CronField(serializers.CharField):
    """Shown as it was typed, or as it was changed in the admin; null of other types."""

    def get_attribute(self, instance: Schedule) -> str | None:
        return (instance.typed or instance.expression) if instance.type == ScheduleType.CRON else None


class MisfireSerializer(Strict):
    """What becomes of times that nobody could fire: `once` makes up for the newest, `all` for up to `cap` of them."""

    policy = serializers.ChoiceField(required=False, choices=Misfire.choices)
    grace = SpanField(required=False, help_text="once: a time that is longer ago is missed. Default 10 minutes.")
    cap = serializers.IntegerField(required=False, help_text="all: the most that are made up for. Default 10.")
    spacing = SpanField(required=False, help_text="all: the pause between them. Default 0.")

    def get_attribute(self, instance: Schedule) -> Any:
        return {
            "policy": instance.misfire,
            "grace": instance.misfire_grace_seconds,
            "cap": instance.misfire_cap,
            "spacing": instance.misfire_spacing_seconds,
        }


class PauseShownSerializer(serializers.Serializer[Any]):
    """While it is paused its due times are skipped."""

    since = InstantField(source="paused_at")
    until = InstantField(source="paused_until", allow_null=True, help_text="Null: until somebody resumes it.")
    by = serializers.CharField(source="paused_by")
    reason = serializers.CharField(source="paused_why")


class ScheduleSerializer(Strict):
    """A time of a job."""

    id = serializers.IntegerField(read_only=True)
    job = serializers.IntegerField(source="job_id", min_value=1, max_value=LARGEST_KEY, help_text="The id of the job.")
    name = serializers.CharField(required=False, allow_blank=True, max_length=100)
    type = serializers.ChoiceField(choices=ScheduleType.choices)
    cron = CronField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=500,
        trim_whitespace=False,
        help_text="cron: five fields, @daily and the like, or ~ as minute for one of its own.",
    )
    expression = serializers.CharField(read_only=True, help_text="cron: what it stands for.")
    every = SpanField(required=False, allow_null=True, source="every_seconds", help_text="interval: at least 1 s.")
    anchor_at = InstantField(
        required=False, allow_null=True, help_text="interval: counted from here, else from start_at, else from now."
    )
    at = InstantField(required=False, allow_null=True, source="once_at", help_text="once: a time to come.")
    timezone = serializers.CharField(required=False, max_length=64, help_text="Such as Europe/Berlin. Default UTC.")
    start_at = InstantField(required=False, allow_null=True, help_text="Not before.")
    end_at = InstantField(required=False, allow_null=True, help_text="Not after.")
    parameters = serializers.DictField(required=False, help_text="Laid over the job's; texts may hold templates.")
    jitter = SpanField(
        required=False, source="jitter_seconds", help_text="Starts up to so much later, each time differently."
    )
    misfire = MisfireSerializer(required=False)
    enabled = serializers.BooleanField(required=False)
    paused = serializers.SerializerMethodField()
    next_at = InstantField(source="next_slot_at", read_only=True, allow_null=True, help_text="Null: never again.")
    words = serializers.SerializerMethodField(help_text="The rule in the language of the request.")
    trouble = serializers.CharField(read_only=True, help_text="Why it cannot fire; empty when all is well.")
    created_at = InstantField(read_only=True)
    updated_at = InstantField(read_only=True)

    @extend_schema_field(PauseShownSerializer(allow_null=True))
    def get_paused(self, schedule: Schedule) -> dict[str, Any] | None:
        paused = selectors.is_paused(schedule, self.context["now"])
        return dict(PauseShownSerializer(schedule).data) if paused else None

    def get_words(self, schedule: Schedule) -> str:
        try:
            return words(selectors.rule_for(schedule))
        except BadRule:
            return ""

    def validate_job(self, pk: int) -> int:
        schedule = self.context.get("schedule")
        if schedule is not None and pk != schedule.job_id:
            raise ValidationError(_("The job of a schedule cannot be changed; make a new schedule."))
        return pk


class ScheduleQuery(PageQuery):
    """Filters of the list of schedules."""

    job = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_KEY, help_text="The id of a job.")
    enabled = serializers.BooleanField(required=False, allow_null=True, default=None)


class PauseSerializer(Strict):
    """Why, and until when."""

    reason = serializers.CharField(max_length=200)
    until = InstantField(required=False, allow_null=True, default=None, help_text="Null: until somebody resumes it.")


class SwitchOffSerializer(Strict):
    """Why."""

    reason = serializers.CharField(max_length=200)


class SwitchSerializer(serializers.Serializer[Clock]):
    """Whether schedules fire at all."""

    on = serializers.SerializerMethodField()
    since = InstantField(source="off_since", allow_null=True, help_text="Off since.")
    by = serializers.CharField(source="off_by")
    reason = serializers.CharField(source="off_why")

    def get_on(self, clock: Clock) -> bool:
        return clock.off_since is None


class LedgerQuery(AnyPageQuery):
    """Which rows of the ledger."""

    since = InstantField(required=False, allow_null=True, default=None, help_text="Due then or later.")
    until = InstantField(required=False, allow_null=True, default=None, help_text="Due before then.")
    outcome = serializers.ChoiceField(required=False, default="", choices=Outcome.choices)
    schedule = serializers.IntegerField(required=False, allow_null=True, default=None, max_value=LARGEST_KEY)
    after = serializers.CharField(required=False, default="", max_length=60, help_text="As in the address of `next`.")


class FiringSerializer(serializers.Serializer[Any]):
    """A due time, and what became of it."""

    id = serializers.IntegerField()
    schedule = serializers.IntegerField(source="schedule_id", allow_null=True, help_text="Null: it was deleted.")
    due_at = InstantField(source="scheduled_for")
    last_due_at = InstantField(source="until", allow_null=True, help_text="Of a row for several times: the last.")
    times = serializers.IntegerField(help_text="How many due times this row stands for.")
    outcome = serializers.ChoiceField(choices=Outcome.choices)
    reason = serializers.CharField(help_text="For programs; empty: it was fired.")
    sentence = serializers.SerializerMethodField(help_text="Why, in the language of the request.")
    run = serializers.IntegerField(source="run_id", allow_null=True)
    run_state = serializers.CharField(source="run.state", default=None, allow_null=True)
    decided_at = InstantField()

    def get_sentence(self, firing: Firing) -> str:
        return reasons.sentence(firing)


class WhyQuery(Strict):
    """The time in question."""

    at = InstantField(help_text="Any instant of the minute.")


class AnswerSerializer(serializers.Serializer[selectors.Answer]):
    """What one schedule has to say."""

    schedule = serializers.IntegerField(source="schedule.pk", default=None, allow_null=True)
    firing = FiringSerializer(allow_null=True)
    sentence = serializers.CharField()


class WhySerializer(serializers.Serializer[Any]):
    """Why it did, or did not, run at a time."""

    text = serializers.CharField(help_text="All answers in one text.")
    answers = AnswerSerializer(many=True)


SchedulePage = page_of(ScheduleSerializer, "SchedulePage")
LedgerPageSerializer = page_of(FiringSerializer, "LedgerPage")
