"""One shape for every refusal."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404
from rest_framework.exceptions import NotAuthenticated, Throttled, ValidationError

from apps.api.errors import exception_handler
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotFound("There is no such run."), 404, "not_found"),
        (Forbidden("No."), 403, "forbidden"),
        (Conflict("Too late."), 409, "conflict"),
        (Invalid("Bad.", fields={"a": ["b"]}), 400, "invalid"),
        (Http404(), 404, "not_found"),
        (PermissionDenied(), 403, "forbidden"),
        (SuspiciousOperation(), 400, "parse_error"),
        (NotAuthenticated(), 401, "not_signed_in"),
        (Throttled(wait=7.5), 429, "throttled"),
        (ValidationError({"a": ["b"]}), 400, "invalid"),
        (OperationalError("gone"), 503, "unavailable"),
        (ZeroDivisionError("secret"), 500, "internal"),
    ],
)
def test_every_exception_has_the_one_shape(error: Exception, status: int, code: str) -> None:
    answer = exception_handler(error, {})
    assert answer.status_code == status
    assert set(answer.data) == {"code", "detail", "fields"}
    assert answer.data["code"] == code
    assert answer.data["detail"].endswith((".", "seconds.", "b"))
    assert "secret" not in answer.data["detail"]


def test_nested_faults_are_named_by_dotted_path() -> None:
    error = ValidationError({"limits": {"memory_mb": ["Too small."]}, "env": {"A": ["Not a text."]}})
    answer = exception_handler(error, {})
    assert answer.data == {
        "code": "invalid",
        "detail": "limits.memory_mb: Too small.",
        "fields": {"limits.memory_mb": ["Too small."], "env.A": ["Not a text."]},
    }


def test_a_throttled_caller_learns_when_to_come_again() -> None:
    assert exception_handler(Throttled(wait=7.5), {})["Retry-After"] == "8"
