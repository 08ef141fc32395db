"""The door of webhooks: POST /hooks/<token>/. No session, no cookie: the token in the address is all there is."""

from __future__ import annotations

from typing import Any

from allauth.core.internal.httpkit import get_client_ip
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.jobs.services import hooks
from apps.jobs.services.hooks.calling import BODY_BYTES

MOST_NAMED = 20
LONGEST_NAME = 100


@extend_schema(exclude=True)
class HookDoor(APIView):
    """Answers like the REST API, also where something is wrong."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    http_method_names = ["post"]

    def post(self, request: Request, token: str) -> Response:
        plain = request._request
        try:
            called = hooks.call_hook(
                token=token,
                # One byte more than is taken tells that there is more; the signature is of the bytes as they came.
                body=plain.read(BODY_BYTES + 1),
                headers=plain.headers,
                now=timezone.now(),
                address=address_of(plain),
            )
        except hooks.TooManyCalls as error:
            raise Throttled(wait=error.seconds) from error
        return Response(answer_of(called), status=202)


def answer_of(called: hooks.Called) -> dict[str, Any]:
    """Names the run, but says nothing of the job that the caller did not know."""
    answer: dict[str, Any] = {"run": called.run.pk, "state": called.run.state, "new": called.new}
    for what in ("ignored", "missing"):
        if names := getattr(called.taken, what):
            answer[what] = [name[:LONGEST_NAME] for name in names[:MOST_NAMED]]
    return answer


def address_of(request: HttpRequest) -> str:
    """Where the caller is, by the same rule as for failed sign-ins."""
    try:
        found: str | None = get_client_ip(request)
    except ImproperlyConfigured:
        found = None
    return found or request.META.get("REMOTE_ADDR", "")
