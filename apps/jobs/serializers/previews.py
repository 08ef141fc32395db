"""What a schedule would do, as the API is asked and answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.rest import LARGEST_KEY, Strict
from apps.jobs.models import ScheduleType
from apps.jobs.serializers.jobs import SpanField

MOST_TIMES = 100
YEARS = range(1970, 3000)


class PreviewSerializer(Strict):
    """A rule, as schedules have it."""

    type = serializers.ChoiceField(choices=ScheduleType.choices, default=ScheduleType.CRON)
    cron = serializers.CharField(
        default="", allow_blank=True, help_text="Five fields, @daily and the like, or ~ for a minute of its own."
    )
    every = SpanField(required=False, allow_null=True, help_text="interval: at least a second.")
    anchor_at = serializers.DateTimeField(
        required=False, allow_null=True, default_timezone=UTC, help_text="interval: counted from here. Null: from now."
    )
    at = serializers.DateTimeField(required=False, allow_null=True, default_timezone=UTC)
    timezone = serializers.CharField(default="UTC", help_text="Such as Europe/Berlin.")
    after = serializers.DateTimeField(
        required=False, allow_null=True, default_timezone=UTC, help_text="Times later than this. Null: than now."
    )
    count = serializers.IntegerField(min_value=1, max_value=MOST_TIMES, default=10)
    seed = serializers.IntegerField(
        min_value=0, max_value=LARGEST_KEY, default=0, help_text="The number of the schedule, which settles ~."
    )

    def validate_after(self, value: datetime | None) -> datetime | None:
        if value is not None and value.year not in YEARS:
            raise ValidationError(_("This is too far away."))
        return value


class TimeSerializer(serializers.Serializer[Any]):
    """A due time."""

    at = serializers.DateTimeField(default_timezone=UTC)
    local = serializers.SerializerMethodField(help_text="By the clock of the zone, with its distance from UTC.")
    clock_change = serializers.BooleanField(help_text="The clock of the zone is changed on that day.")

    def get_local(self, time: Any) -> str:
        return str(time.local.isoformat())


class PreviewAnswerSerializer(serializers.Serializer[Any]):
    """The next times, and the rule in words of the request's language."""

    times = TimeSerializer(many=True)
    words = serializers.CharField()
