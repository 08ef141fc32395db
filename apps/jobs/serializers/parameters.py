"""What parameters would become, as the API is asked and answers."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import LARGEST_KEY, Strict


class PreviewParametersSerializer(Strict):
    """Parameters of a job, or of one that is not made yet. Nothing is stored and nothing is run."""

    job = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_KEY, help_text="The id of a job, or:")
    spider = serializers.CharField(required=False, max_length=64, help_text="the name of a spider.")
    parameters = serializers.DictField(required=False, help_text="Laid over those of the job.")
    arguments = serializers.ListField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        max_length=100,
        help_text="In the place of the job's.",
    )
    env = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="In the place of the job's.",
    )
    scheduled_for = serializers.DateTimeField(
        required=False, allow_null=True, default_timezone=UTC, help_text="What dates are of. Null: now."
    )
    timezone = serializers.CharField(default="UTC", max_length=64, help_text="Such as Europe/Berlin.")
    calls = serializers.BooleanField(default=False, help_text="Make the job's calls too; takes the right to run it.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("job" in attrs) == ("spider" in attrs):
            raise ValidationError({"job": [_("Name either a job or a spider.")]})
        moment = attrs.get("scheduled_for")
        if moment is not None and not 1970 <= moment.year < 3000:
            raise ValidationError({"scheduled_for": [_("This is too far away.")]})
        return attrs


class PreviewParametersAnswer(serializers.Serializer[Any]):
    """Values with templates filled in."""

    parameters = serializers.DictField()
    env = serializers.DictField(child=serializers.CharField())
    command = serializers.ListField(child=serializers.CharField())
    # Not `errors`: a serializer has that already.
    faults = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Sentences by place: empty when all is well.",
    )
    open = serializers.DictField(
        child=serializers.CharField(),
        help_text="Places whose value only the run will know, with their templates: outputs of upstream jobs, answers "
        "to calls that were not made, the name of the node.",
    )
