"""One shape for every refusal: {"code", "detail", "fields"}."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.settings import api_settings

from apps.core.errors import PanelError

logger = logging.getLogger(__name__)

# Django's and DRF's words for a code, where ours differ.
CODES = {
    "permission_denied": "forbidden",
    "not_authenticated": "not_signed_in",
    "authentication_failed": "not_signed_in",
}


def body(code: str, detail: object, fields: Mapping[str, list[str]] | None = None) -> dict[str, Any]:
    return {"code": code, "detail": str(detail), "fields": dict(fields or {})}


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answer every exception of an API view, also a bug (which is logged with its traceback)."""
    if isinstance(error, PanelError):
        return Response(body(error.code, error.message, error.fields), status=error.status)
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, SuspiciousOperation):
        error = exceptions.ParseError(_("The request could not be read."))
    if isinstance(error, exceptions.ValidationError):
        return Response(_invalid(error), status=error.status_code)
    if isinstance(error, exceptions.APIException):
        code = error.get_codes()
        name = CODES.get(code, code) if isinstance(code, str) else error.default_code
        return Response(body(name, error.detail), status=error.status_code, headers=_headers(error))
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("the database does not answer: %s", error)
        detail = _("The database does not answer just now. Nothing was changed; try again.")
        return Response(body("unavailable", detail), status=503, headers={"Retry-After": "5"})
    logger.error("unexpected error in %s", type(context.get("view")).__name__, exc_info=error)
    detail = _("Something went wrong on our side; the server's log says what.")
    return Response(body("internal", detail), status=status.HTTP_500_INTERNAL_SERVER_ERROR)


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


def _invalid(error: exceptions.ValidationError) -> dict[str, Any]:
    """The first sentence stands in `detail` too, with its place, for whoever reads only that."""
    fields: dict[str, list[str]] = {}
    general: list[str] = []
    for path, sentence in _sentences(error.detail):
        if path:
            fields.setdefault(path, []).append(sentence)
        else:
            general.append(sentence)
    if general:
        detail = general[0]
    elif fields:
        path = next(iter(fields))
        detail = f"{path}: {fields[path][0]}"
    else:
        detail = _("The request is not valid.")
    return body("invalid", detail, fields)


def _sentences(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each sentence with its dotted path, "limits.memory_mb" or "env.3"."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            inner = path if key == api_settings.NON_FIELD_ERRORS_KEY else f"{path}.{key}".lstrip(".")
            yield from _sentences(value, inner)
    elif isinstance(detail, list | tuple):
        for position, value in enumerate(detail):
            nested = isinstance(value, Mapping | list | tuple)
            yield from _sentences(value, f"{path}.{position}".lstrip(".") if nested else path)
    else:
        yield path, str(detail)
