"""The ledger of due times over the REST API."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import Invalid, NotFound
from apps.core.rest import ApiViewSet, checked_query, next_address
from apps.jobs import selectors
from apps.jobs.models import Job
from apps.jobs.serializers.schedules import FiringSerializer, LedgerPageSerializer, LedgerQuery, WhyQuery, WhySerializer


@extend_schema(tags=["schedules"])
class LedgerViewSet(ApiViewSet):
    """Each due time of a job, and what became of it."""

    serializer_class = FiringSerializer

    @extend_schema(summary="List the due times of a job", parameters=[LedgerQuery], responses=LedgerPageSerializer)
    def list(self, request: Request, job_pk: int) -> Response:
        """Newest first."""
        job = _job(request, job_pk)
        query = checked_query(LedgerQuery, request)
        schedule = query.pop("schedule")
        try:
            found = selectors.ledger(job, schedule_id=schedule, **query)
        except ValueError as error:
            sentence = _("This is not the end of a page.")
            raise Invalid(sentence, fields={"after": [sentence]}) from error
        following = next_address(request, found.following) if found.following else None
        return Response({"results": FiringSerializer(found.rows, many=True).data, "next": following})

    @extend_schema(
        summary="Why a job did, or did not, run at a time",
        description="Out of the ledger; where it does not know of that minute, out of the job's schedules.",
        parameters=[WhyQuery],
        responses=WhySerializer,
    )
    @action(detail=False)
    def why(self, request: Request, job_pk: int) -> Response:
        job = _job(request, job_pk)
        at, now = checked_query(WhyQuery, request)["at"], timezone.now()
        answers = selectors.answers_for(job, at, now=now)
        return Response(WhySerializer({"text": selectors.in_one_text(answers), "answers": answers}).data)


def _job(request: Request, pk: int) -> Job:
    job = selectors.visible_jobs(request.user).filter(pk=pk).first()
    if job is None:
        raise NotFound(_("There is no such object."))
    return job
