"""What parameters with templates become, before there is a run."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.rights import allowed
from apps.core.errors import Invalid
from apps.core.rest import ApiViewSet, checked, take
from apps.jobs import selectors
from apps.jobs.models import Job
from apps.jobs.serializers.parameters import PreviewParametersAnswer, PreviewParametersSerializer
from apps.jobs.services.parameters import needed_version
from apps.jobs.services.rendering import preview
from apps.spiders.models import Spider


@extend_schema(tags=["jobs"])
class ParameterPreviewViewSet(ApiViewSet):
    """For jobs and spiders that the caller may see."""

    serializer_class = PreviewParametersSerializer

    @extend_schema(
        summary="Preview parameters",
        description="What templates in parameters, arguments and environment variables would become in a run for a "
        "given time. Calls are made only when asked for.",
        request=PreviewParametersSerializer,
        responses=PreviewParametersAnswer,
    )
    def create(self, request: Request) -> Response:
        asked = checked(PreviewParametersSerializer, request.data)
        now = timezone.now()
        job = self._job(request, asked)
        shown = preview(
            job=job,
            version=needed_version(job),
            parameters={**job.parameters, **asked.get("parameters", {})},
            env=asked.get("env", job.env),
            arguments=asked.get("arguments", job.arguments),
            instant=asked.get("scheduled_for") or now,
            zone=asked["timezone"],
            now=now,
            call=asked["calls"],
        )
        return Response(PreviewParametersAnswer(shown).data)

    def _job(self, request: Request, asked: dict[str, Any]) -> Job:
        if "job" in asked:
            seen = selectors.visible_jobs(request.user)
            permitted = selectors.visible_jobs(request.user, "run") if asked["calls"] else seen
            return take(seen, permitted, asked["job"], _("You may not run this job, so not make its calls."))
        rows = allowed(request.user, "view", Spider).select_related("project", "current_version")
        spider = rows.filter(name=asked["spider"]).first()
        if spider is None:
            sentence = _("There is no spider %(name)s.") % {"name": asked["spider"]}
            raise Invalid(sentence, fields={"spider": [sentence]})
        return Job(spider=spider, project=spider.project)
