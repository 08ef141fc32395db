"""Jobs as the API shows and takes them."""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.durations import read_duration
from apps.core.errors import Invalid
from apps.core.rest import NumberField, PageQuery, Strict, page_of
from apps.jobs.models import Job, NodeLost, Overlap
from apps.runs.policies import CAUSES, Backoff, FailedItems, RetryPolicy


def bounds(name: str) -> dict[str, Any]:
    """The limits that the model gives a number."""
    found: dict[str, Any] = {}
    for validator in getattr(Job._meta.get_field(name), "validators", ()):
        # The database's own range comes along too: the narrower bound counts.
        if isinstance(validator, MinValueValidator):
            found["min_value"] = max(validator.limit_value, found.get("min_value", validator.limit_value))
        elif isinstance(validator, MaxValueValidator):
            found["max_value"] = min(validator.limit_value, found.get("max_value", validator.limit_value))
    return found


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}], "example": "1h30m"})
class SpanField(serializers.Field[int, int | str, int, Any]):
    """Seconds, or a text such as "30s", "5m" or "1h30m"; shown as seconds. Its bounds are the service's."""

    def to_internal_value(self, data: Any) -> int:
        try:
            return read_duration(data)
        except Invalid as error:
            raise ValidationError(error.message) from error

    def to_representation(self, value: int) -> int:
        return value


class LimitsSerializer(Strict):
    """What a run may use. What is not sent keeps its value or takes the spider's default; null is no such limit."""

    memory_mb = serializers.IntegerField(required=False, **bounds("memory_mb"))
    cpus = NumberField(required=False, **bounds("cpus"))
    timeout_seconds = SpanField(required=False, help_text="For one attempt.")
    grace_seconds = SpanField(required=False, help_text="Between a stop and the kill, at most 10 minutes.")
    start_seconds = SpanField(required=False, allow_null=True, help_text="Until an attempt has started.")
    idle_seconds = SpanField(required=False, allow_null=True, help_text="Without a line, item or progress.")
    total_seconds = SpanField(required=False, allow_null=True, help_text="Over all attempts and the pauses between.")
    queue_seconds = SpanField(required=False, allow_null=True, help_text="In the queue, until it ends unstarted.")
    pause_seconds = SpanField(required=False, allow_null=True, help_text="A longer pause ends by itself.")


class RetrySerializer(Strict):
    """Whether and when a failed run is tried again. It is replaced as a whole: what is not sent has its default."""

    attempts = serializers.IntegerField(required=False, help_text="With the first one: 1 is no retry. Default 1.")
    backoff = serializers.ChoiceField(required=False, choices=[str(each) for each in Backoff])
    delay_seconds = SpanField(required=False, help_text="Before the second attempt. Default 30.")
    factor = NumberField(required=False, help_text="Exponential: each pause is that many times the last. Default 2.")
    cap_seconds = SpanField(required=False, help_text="Exponential: no pause is longer. Default 3600.")
    delays = serializers.ListField(child=SpanField(), required=False, help_text="List: one pause after the other.")
    jitter = NumberField(required=False, help_text="The share by which a pause varies at random, 0 to 1. Default 0.1.")
    causes = serializers.ListField(
        child=serializers.CharField(), required=False, help_text=f"What is tried again, of {', '.join(CAUSES)}."
    )
    codes = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="If any: the only exit codes that are tried again."
    )
    never_codes = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="Exit codes that are never tried again."
    )
    infrastructure = serializers.IntegerField(
        required=False, help_text="How often a failure of node or engine is made good, counted apart. Default 3."
    )
    items = serializers.ChoiceField(
        required=False,
        choices=[str(each) for each in FailedItems],
        help_text="What becomes of the items of an attempt that is followed by another.",
    )

    def get_attribute(self, instance: Job) -> Any:
        return RetryPolicy.read(instance.retry).as_spec()


class ParametersField(serializers.DictField):
    """Parameters as the spider's schema has them. A secret is shown as {"set": true} and kept when sent so."""

    def get_attribute(self, instance: Job) -> Any:
        return instance

    def to_representation(self, value: Any) -> dict[str, Any]:
        return {**value.parameters, **{name: {"set": True} for name in value.secrets}}


class PoolNamesField(serializers.ListField):
    def to_representation(self, value: Any) -> list[str]:
        return sorted(pool.name for pool in value.all())


class JobSerializer(Strict):
    """A job."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=200)
    project = serializers.CharField(source="project.slug", read_only=True)
    spider = serializers.CharField(source="spider.name", max_length=64, help_text="The name of a spider.")
    version = serializers.CharField(
        source="version.name", read_only=True, default=None, help_text="Null: always the spider's current version."
    )
    parameters = ParametersField(required=False)
    limits = LimitsSerializer(source="*", required=False)
    priority = serializers.IntegerField(required=False, help_text="1 is the most urgent.", **bounds("priority"))
    env = serializers.DictField(child=serializers.CharField(allow_blank=True, trim_whitespace=False), required=False)
    arguments = serializers.ListField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="Laid behind the spider's command, one argument each, never read by a shell. May hold templates.",
    )
    calls = serializers.DictField(
        child=serializers.JSONField(),
        required=False,
        help_text='Asked before a run: {name: {"method", "url", "headers", "secret_headers", "body"}}. An answer is '
        "read as {{ call.<name>.<path> }}. `secret_headers` names secret parameters.",
    )
    overlap = serializers.ChoiceField(
        required=False, choices=Overlap.choices, help_text="What a new run does while an earlier one is not over."
    )
    overlap_max = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="queue: the most that wait (null: 100); allow: the most at once (null: no limit).",
        **bounds("overlap_max"),
    )
    retry = RetrySerializer(required=False)
    on_node_lost = serializers.ChoiceField(required=False, choices=NodeLost.choices)
    pools = PoolNamesField(
        child=serializers.CharField(), required=False, help_text="Names of pools whose limits its runs share."
    )
    selector = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="Labels that its node must have.",
    )
    repair_job = serializers.IntegerField(
        source="repair_job_id", required=False, allow_null=True, help_text="The id of a job run when all has failed."
    )
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)

    def validate_spider(self, name: str) -> str:
        job = self.context.get("job")
        if job is not None and name != job.spider.name:
            raise ValidationError(_("The spider of a job cannot be changed; make a new job."))
        return name


class RunJobSerializer(Strict):
    """How this run differs from the job."""

    parameters = serializers.DictField(required=False, help_text="Laid over the job's parameters.")


class JobQuery(PageQuery):
    """Filters of the list of jobs."""

    spider = serializers.CharField(required=False, help_text="The name of a spider.")
    name = serializers.CharField(required=False, help_text="The exact name of a job.")


JobPage = page_of(JobSerializer, "JobPage")
