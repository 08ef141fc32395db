"""Webhooks of a job over the REST API."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from apps.core.actors import person
from apps.core.errors import NotFound
from apps.core.rest import ApiViewSet, checked, checked_query, page, page_answer, take
from apps.jobs import selectors
from apps.jobs.models import Hook, Job
from apps.jobs.selectors.hooks import hooks_of
from apps.jobs.serializers.hooks import HookPage, HookQuery, HookSerializer, MadeHookSerializer
from apps.jobs.services import hooks


@extend_schema(tags=["webhooks"])
class HookViewSet(ApiViewSet):
    """Webhooks of a job that the caller may schedule."""

    serializer_class = HookSerializer
    lookup_value_converter = "int"

    def _job(self, request: Request, pk: int) -> Job:
        permitted = selectors.visible_jobs(request.user, "schedule")
        return take(selectors.visible_jobs(request.user), permitted, pk, _("You may not schedule this job."))

    def _hook(self, job: Job, pk: int) -> Hook:
        found = hooks_of(job).filter(pk=pk).first()
        if found is None:
            raise NotFound(_("There is no such object."))
        return found

    @extend_schema(summary="List webhooks", parameters=[HookQuery], responses=HookPage)
    def list(self, request: Request, job_pk: int) -> Response:
        job = self._job(request, job_pk)
        query = checked_query(HookQuery, request)
        rows, following = page(request, hooks_of(job), key="id", after=query["after"], limit=query["limit"])
        return page_answer(HookSerializer, rows, following)

    @extend_schema(
        summary="Make a webhook",
        description="The address and the key are in this answer and nowhere else.",
        request=HookSerializer,
        responses={201: MadeHookSerializer},
    )
    def create(self, request: Request, job_pk: int) -> Response:
        job = self._job(request, job_pk)
        values = checked(HookSerializer, request.data)
        made = hooks.create_hook(job=job, by=person(request.user, "api"), now=timezone.now(), **values)
        return Response(self._shown(request, *made), status=201)

    @extend_schema(summary="Revoke a webhook", description="Its address is unknown from now on.", responses={204: None})
    def destroy(self, request: Request, job_pk: int, pk: int) -> Response:
        hook = self._hook(self._job(request, job_pk), pk)
        hooks.revoke_hook(hook=hook, by=person(request.user, "api"), now=timezone.now())
        return Response(status=204)

    @extend_schema(
        summary="Renew a webhook",
        description="Another address and key; the old ones open nothing any more.",
        request=None,
        responses=MadeHookSerializer,
    )
    @action(detail=True, methods=["post"])
    def renew(self, request: Request, job_pk: int, pk: int) -> Response:
        hook = self._hook(self._job(request, job_pk), pk)
        made = hooks.renew_token(hook=hook, by=person(request.user, "api"), now=timezone.now())
        return Response(self._shown(request, *made))

    def _shown(self, request: Request, hook: Hook, token: str, key: str) -> dict[str, object]:
        url = reverse("hooks:door", args=(token,), request=request)
        return dict(MadeHookSerializer((hook, url, key)).data)
