"""Jobs as the API shows and takes them."""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import NumberField, PageQuery, Strict, page_of
from apps.jobs.models import Job


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


class LimitsSerializer(Strict):
    """What a run may use. What is not sent keeps its value or takes the spider's default."""

    memory_mb = serializers.IntegerField(required=False, **bounds("memory_mb"))
    cpus = NumberField(required=False, **bounds("cpus"))
    timeout_seconds = serializers.IntegerField(required=False, **bounds("timeout_seconds"))
    grace_seconds = serializers.IntegerField(required=False, **bounds("grace_seconds"))


class ParametersField(serializers.DictField):
    """Parameters as the spider's schema has them. A secret is shown as {"set": true} and kept when sent so."""

    def get_attribute(self, instance: Job) -> Any:
        return instance

    def to_representation(self, value: Any) -> dict[str, Any]:
        return {**value.parameters, **{name: {"set": True} for name in value.secrets}}


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
