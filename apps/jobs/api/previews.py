"""What a schedule would do, before it is kept."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.rest import ApiViewSet, checked
from apps.jobs.serializers.previews import PreviewAnswerSerializer, PreviewSerializer
from apps.jobs.services.schedules.checks import faults_of
from apps.jobs.timing import BadRule, check_cron, preview, rule_of, words


@extend_schema(tags=["schedules"])
class SchedulePreviewViewSet(ApiViewSet):
    """Nothing is stored and nothing is looked up: whoever may sign in may ask."""

    serializer_class = PreviewSerializer

    @extend_schema(
        summary="Preview a schedule",
        description="The next times by the rule that will fire, and the rule in words.",
        request=PreviewSerializer,
        responses=PreviewAnswerSerializer,
    )
    def create(self, request: Request) -> Response:
        asked = checked(PreviewSerializer, request.data)
        now = timezone.now()
        cron, type_, zone = asked["cron"], asked["type"], asked["timezone"]
        try:
            rule = rule_of(
                type=type_,
                expression=check_cron(cron, seed=asked["seed"]) if type_ == "cron" else "",
                every_seconds=asked.get("every"),
                anchor_at=asked.get("anchor_at") or now,
                once_at=asked.get("at"),
                timezone=zone,
            )
        except BadRule as error:
            error.fields = faults_of(error)
            raise
        times = preview(rule, zone, asked.get("after") or now, asked["count"])
        return Response(PreviewAnswerSerializer({"times": times, "words": words(rule)}).data)
