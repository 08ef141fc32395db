"""Schedules over the REST API, and the switch of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.rights import may_change
from apps.core.actors import person
from apps.core.errors import Forbidden, Invalid
from apps.core.rest import ApiViewSet, checked, checked_query, page, take
from apps.jobs import selectors
from apps.jobs.models import Clock, Job, Schedule
from apps.jobs.serializers.schedules import (
    PauseSerializer,
    SchedulePage,
    ScheduleQuery,
    ScheduleSerializer,
    SwitchOffSerializer,
    SwitchSerializer,
)
from apps.jobs.services import schedules as services

# By the names of the columns, where they differ from those of the services.
_NAMES = {"every_seconds": "every", "once_at": "at", "jitter_seconds": "jitter"}


@extend_schema(tags=["schedules"])
class ScheduleViewSet(ApiViewSet):
    """When jobs run by themselves. A change counts from now on and never makes up for the past."""

    serializer_class = ScheduleSerializer
    lookup_value_converter = "int"
    # To pause a schedule is not to pause a run.
    token_scope = "write"  # noqa: S105 (no password)

    def _take(self, request: Request, pk: int, may: str = "view") -> Schedule:
        permitted = selectors.visible_schedules(request.user, may)
        refusal = _("You may not schedule this job.")
        return take(selectors.visible_schedules(request.user), permitted, pk, refusal)

    @extend_schema(summary="List schedules", parameters=[ScheduleQuery], responses=SchedulePage)
    def list(self, request: Request) -> Response:
        query = checked_query(ScheduleQuery, request)
        found = selectors.visible_schedules(request.user)
        if "job" in query:
            found = found.filter(job=query["job"])
        if query["enabled"] is not None:
            found = found.filter(enabled=query["enabled"])
        rows, following = page(request, found, key="id", after=query["after"], limit=query["limit"])
        return Response({"results": [_shown(row) for row in rows], "next": following})

    @extend_schema(
        summary="Make a schedule",
        description="`cron` needs `cron`, `interval` needs `every`, `once` needs `at`.",
        request=ScheduleSerializer,
        responses={201: ScheduleSerializer},
    )
    def create(self, request: Request) -> Response:
        values = checked(ScheduleSerializer, request.data)
        job = _job_to_schedule(request, values.pop("job_id"))
        made = services.create_schedule(job=job, by=_caller(request), now=timezone.now(), **_named(values))
        return Response(_shown(made), status=201)

    @extend_schema(summary="Show a schedule", responses=ScheduleSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(_shown(self._take(request, pk)))

    @extend_schema(
        summary="Change some of a schedule",
        description="What is not sent stays; `parameters` are replaced as a whole.",
        request=ScheduleSerializer,
        responses=ScheduleSerializer,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        schedule = self._take(request, pk, "schedule")
        reader = ScheduleSerializer(data=request.data, partial=True, context={"schedule": schedule})
        reader.is_valid(raise_exception=True)
        changes = _named(reader.validated_data)
        changes.pop("job_id", None)
        return self._changed(request, schedule, services.update_schedule, **changes)

    @extend_schema(
        summary="Delete a schedule", description="Its runs and its ledger stay.", request=None, responses={204: None}
    )
    def destroy(self, request: Request, pk: int) -> Response:
        schedule = self._take(request, pk, "schedule")
        services.delete_schedule(schedule=schedule, by=_caller(request), now=timezone.now())
        return Response(status=204)

    @extend_schema(
        summary="Pause a schedule",
        description="Its due times are kept in the ledger as skipped, until it is resumed or the pause has passed.",
        request=PauseSerializer,
        responses=ScheduleSerializer,
    )
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: int) -> Response:
        schedule = self._take(request, pk, "schedule")
        values = checked(PauseSerializer, request.data)
        return self._changed(request, schedule, services.pause_schedule, **values)

    @extend_schema(summary="Resume a schedule", request=None, responses=ScheduleSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: int) -> Response:
        return self._changed(request, self._take(request, pk, "schedule"), services.resume_schedule)

    def _changed(
        self, request: Request, schedule: Schedule, change: Callable[..., Schedule], **values: Any
    ) -> Response:
        return Response(_shown(change(schedule=schedule, by=_caller(request), now=timezone.now(), **values)))


@extend_schema(tags=["schedules"])
class SchedulingViewSet(ApiViewSet):
    """The switch of all scheduling: everybody who is signed in sees it, staff with the permission turns it."""

    serializer_class = SwitchSerializer

    @extend_schema(summary="Whether schedules fire", responses=SwitchSerializer)
    def list(self, request: Request) -> Response:
        return Response(SwitchSerializer(selectors.clock()).data)

    @extend_schema(
        summary="Switch all scheduling off",
        description="Due times are kept in the ledger as skipped. Runs go on, and jobs can still be started by hand.",
        request=SwitchOffSerializer,
        responses=SwitchSerializer,
    )
    @action(detail=False, methods=["post"])
    def off(self, request: Request) -> Response:
        _demand_switch(request)
        values = checked(SwitchOffSerializer, request.data)
        services.scheduling_off(by=_caller(request), now=timezone.now(), why=values["reason"])
        return self.list(request)

    @extend_schema(summary="Switch all scheduling on again", request=None, responses=SwitchSerializer)
    @action(detail=False, methods=["post"])
    def on(self, request: Request) -> Response:
        _demand_switch(request)
        services.scheduling_on(by=_caller(request), now=timezone.now())
        return self.list(request)


def _shown(schedule: Schedule) -> Any:
    return ScheduleSerializer(schedule, context={"now": timezone.now()}).data


def _caller(request: Request) -> Any:
    return person(request.user, "api")


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in values.items()}


def _job_to_schedule(request: Request, pk: int) -> Job:
    job = selectors.visible_jobs(request.user, "schedule").filter(pk=pk).first()
    if job is not None:
        return job
    if selectors.visible_jobs(request.user).filter(pk=pk).exists():
        raise Forbidden(_("You may not schedule this job."))
    sentence = _("There is no job %(number)d.") % {"number": pk}
    raise Invalid(sentence, fields={"job": [sentence]})


def _demand_switch(request: Request) -> None:
    if not may_change(request.user, Clock):
        raise Forbidden(_("You may not change this: it takes a member of staff with the permission."))
