"""Jobs over the REST API: to keep and to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.core.actors import person
from apps.core.errors import Forbidden, Invalid, PanelError
from apps.core.rest import ApiViewSet, ErrorSerializer, checked, checked_query, page, page_answer, take
from apps.core.schema_forms import split_secrets
from apps.jobs import selectors, services
from apps.jobs.models import Job
from apps.jobs.serializers import JobPage, JobQuery, JobSerializer, LimitsSerializer, RunJobSerializer
from apps.runs.api import detail_of
from apps.runs.serializers import RunDetailSerializer
from apps.runs.states import Trigger
from apps.spiders.models import Spider, Version

KEPT = {"set": True}
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="1 to 200 printable characters of your choice. The same key again answers 200 with the run of then.",
)


@extend_schema(tags=["jobs"])
class JobViewSet(ApiViewSet):
    """Jobs the caller may see."""

    serializer_class = JobSerializer
    lookup_value_converter = "int"

    def _take(self, request: Request, pk: int, may: str = "view") -> Job:
        refusals = {"edit": _("You may not change this job."), "run": _("You may not run this job.")}
        permitted = selectors.visible_jobs(request.user, may)
        return take(selectors.visible_jobs(request.user), permitted, pk, refusals.get(may, ""))

    @extend_schema(summary="List jobs", parameters=[JobQuery], responses=JobPage)
    def list(self, request: Request) -> Response:
        query = checked_query(JobQuery, request)
        jobs: QuerySet[Job] = selectors.visible_jobs(request.user).prefetch_related("pools")
        if "spider" in query:
            jobs = jobs.filter(spider__name=query["spider"])
        if "name" in query:
            jobs = jobs.filter(name=query["name"])
        rows, following = page(request, jobs, key="id", after=query["after"], limit=query["limit"])
        return page_answer(JobSerializer, rows, following)

    @extend_schema(summary="Make a job", request=JobSerializer, responses={201: JobSerializer})
    def create(self, request: Request) -> Response:
        values = checked(JobSerializer, request.data)
        spider = _spider_for_jobs(request, values.pop("spider")["name"])
        parameters, secrets = _split(spider.current_version, values.pop("parameters", {}))
        with faults_in_places():
            job = services.create_job(
                by=_caller(request),
                now=timezone.now(),
                spider=spider,
                parameters=parameters,
                secrets=secrets,
                **by_their_names(values),
            )
        return Response(JobSerializer(self._take(request, job.pk)).data, status=201)

    @extend_schema(summary="Show a job", responses=JobSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(JobSerializer(self._take(request, pk)).data)

    @extend_schema(
        summary="Change a job, naming it in full",
        description="As PATCH, but `name` and `spider` must be sent.",
        request=JobSerializer,
        responses=JobSerializer,
    )
    def update(self, request: Request, pk: int) -> Response:
        return self._change(request, pk, partial=False)

    @extend_schema(
        summary="Change some of a job",
        description="What is not sent stays. `parameters` are replaced as a whole, but a secret that is not sent, or "
        'sent as {"set": true}, is kept; null forgets it.',
        request=JobSerializer,
        responses=JobSerializer,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        return self._change(request, pk, partial=True)

    @extend_schema(summary="Delete a job", description="Its runs stay.", responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        services.delete_job(job=self._take(request, pk, "edit"), by=_caller(request), now=timezone.now())
        return Response(status=204)

    @extend_schema(
        summary="Run a job",
        parameters=[IDEMPOTENCY_KEY],
        request=RunJobSerializer,
        responses={
            201: RunDetailSerializer,
            200: OpenApiResponse(RunDetailSerializer, "The run that this Idempotency-Key started before."),
            409: OpenApiResponse(ErrorSerializer, "The Idempotency-Key was used for another order."),
        },
    )
    @action(detail=True, methods=["post"])
    def run(self, request: Request, pk: int) -> Response:
        job = self._take(request, pk, "run")
        values = checked(RunJobSerializer, request.data)
        parameters, secrets = _split(selectors.version_of(job), values.get("parameters", {}))
        run, new = services.run_job(
            job=job,
            by=person(request.user, "api"),
            now=timezone.now(),
            trigger=Trigger.API,
            parameters=parameters,
            secrets=secrets,
            idempotency_key=request.headers.get("Idempotency-Key"),
        )
        answer = Response(detail_of(run, request), status=201 if new else 200)
        answer["Location"] = reverse("api:run-detail", kwargs={"pk": run.pk}, request=request)
        return answer

    def _change(self, request: Request, pk: int, *, partial: bool) -> Response:
        job = self._take(request, pk, "edit")
        reader = JobSerializer(job, data=request.data, partial=partial, context={"job": job})
        reader.is_valid(raise_exception=True)
        changes: dict[str, Any] = dict(reader.validated_data)
        changes.pop("spider", None)
        if "parameters" in changes:
            changes["parameters"], changes["secrets"] = _split(selectors.version_of(job), changes["parameters"])
        with faults_in_places():
            services.update_job(job=job, by=_caller(request), now=timezone.now(), **by_their_names(changes))
        return Response(JobSerializer(self._take(request, pk)).data)


def by_their_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a serializer read, by the names that the services give it."""
    return {name.removesuffix("_id"): value for name, value in values.items()}


@contextmanager
def faults_in_places() -> Iterator[None]:
    """The services know a job's limits by name; in a body they stand under `limits`."""
    try:
        yield
    except PanelError as error:
        inside = LimitsSerializer().fields.keys()
        error.fields = {f"limits.{name}" if name in inside else name: said for name, said in error.fields.items()}
        raise


def _caller(request: Request) -> User:
    return cast("User", request.user)


def _spider_for_jobs(request: Request, name: str) -> Spider:
    """The spider, when the caller may make jobs for it."""
    spider = selectors.spiders_for_jobs(request.user).filter(name=name).first()
    if spider is not None:
        return spider
    if allowed(request.user, "view", Spider).filter(name=name).exists():
        raise Forbidden(_("You may not make jobs for spider %(name)s.") % {"name": name})
    sentence = _("There is no spider %(name)s.") % {"name": name}
    raise Invalid(sentence, fields={"spider": [sentence]})


def _split(version: Version | None, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Plain parameters, and the secrets to set (a text) or forget (null); one sent as it is shown is left alone."""
    plain, secrets = split_secrets(version.parameter_schema if version else {}, parameters)
    sent = {name: value for name, value in secrets.items() if value != KEPT}
    if wrong := [name for name, value in sent.items() if value is not None and not isinstance(value, str)]:
        sentence = _("A secret is a text.")
        raise Invalid(sentence, fields={f"parameters.{name}": [sentence] for name in wrong})
    return plain, sent
