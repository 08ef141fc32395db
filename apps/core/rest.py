"""What every app's `api.py` shares: strict input, pages by key set, and the door that answers 404 or 403."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.viewsets import GenericViewSet

from apps.core.errors import Forbidden, NotFound

LARGEST_KEY = 2**63 - 1
# A body may have a hundred thousand of them, and each would get its sentence.
MOST_UNKNOWN = 20

AnyModel = TypeVar("AnyModel", bound=Model)


class LengthRequired(APIException):
    """Without a length the body would be taken as empty, and a run would start without its parameters."""

    status_code = 411
    default_code = "length_required"
    default_detail = gettext_lazy("Send a Content-Length header; chunked bodies are not accepted.")


class Strict(serializers.Serializer[Any]):
    """Refuses names it does not know: a misspelt one must not be dropped in silence."""

    def to_internal_value(self, data: Any) -> Any:
        # A read-only name is let through, so that what was read can be sent back changed.
        unknown = [str(name) for name in data if name not in self.fields] if isinstance(data, Mapping) else []
        if unknown:
            known = ", ".join(name for name, field in self.fields.items() if not field.read_only)
            sentence = _("There is no such field. Known: %(known)s.") % {"known": known}
            raise ValidationError({name: [sentence] for name in unknown[:MOST_UNKNOWN]})
        return super().to_internal_value(data)


class NumberField(serializers.FloatField):
    """A JSON number: DRF's field would take "nan" too."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            self.fail("invalid")
        return float(data)


class ErrorSerializer(serializers.Serializer[Any]):
    """Every refusal has this shape."""

    code = serializers.CharField(help_text="For programs.")
    detail = serializers.CharField(help_text="A sentence, in the language of the request.")
    fields = serializers.DictField(  # type: ignore[assignment]  # the wire says "fields", DRF's property is not used
        child=serializers.ListField(child=serializers.CharField()), help_text="Sentences by dotted field path."
    )


class AnyPageQuery(Strict):
    """How long a page is."""

    largest_page = 200
    limit = serializers.IntegerField(min_value=1, default=50, help_text="Rows a page; more than the largest is cut.")

    def validate_limit(self, value: int) -> int:
        """More than the largest page is no mistake: the page is as long as it may be, and `next` goes on."""
        return min(value, self.largest_page)


class PageQuery(AnyPageQuery):
    """Pages of rows with a number."""

    after = serializers.IntegerField(
        min_value=0, max_value=LARGEST_KEY, allow_null=True, default=None, help_text="The last row seen."
    )


class NamePageQuery(AnyPageQuery):
    """Pages of rows with a name."""

    after = serializers.CharField(allow_null=True, default=None, help_text="The last name seen.")


class ApiViewSet(GenericViewSet[Any]):
    """The base of our endpoints."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if "chunked" in request.headers.get("Transfer-Encoding", "") and not request.META.get("CONTENT_LENGTH"):
            raise LengthRequired


def checked(serializer: type[serializers.Serializer[Any]], values: Any, **context: Any) -> dict[str, Any]:
    """The values as the serializer reads them, or ValidationError."""
    reader = serializer(data=values, context=context)
    reader.is_valid(raise_exception=True)
    return cast("dict[str, Any]", reader.validated_data)


def checked_query(serializer: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """Query parameters, read like a body. Of a repeated one the last counts."""
    return checked(serializer, {name: values[-1] for name, values in request.query_params.lists()})


def page(
    request: Request, rows: QuerySet[AnyModel], *, key: str, after: object, limit: int
) -> tuple[list[AnyModel], str | None]:
    """A page ordered by the unique `key` (with a minus: newest first) and the address of the next, if any."""
    field = key.lstrip("-")
    if after is not None:
        rows = rows.filter(**{f"{field}__lt" if key.startswith("-") else f"{field}__gt": after})
    # One row more than asked for tells whether there is a next page, without counting.
    found = list(rows.order_by(key)[: limit + 1])
    if len(found) <= limit:
        return found, None
    found.pop()
    return found, next_address(request, getattr(found[-1], field))


def next_address(request: Request, after: object) -> str:
    return str(replace_query_param(request.build_absolute_uri(), "after", after))


def page_answer(row: type[serializers.BaseSerializer[Any]], rows: Iterable[Any], following: str | None) -> Response:
    return Response({"results": [row(each).data for each in rows], "next": following})


def page_of(row: type[serializers.BaseSerializer[Any]], name: str) -> type[serializers.Serializer[Any]]:
    """The shape of a page, for the OpenAPI description."""
    fields = {"results": row(many=True), "next": serializers.URLField(allow_null=True)}
    return type(name, (serializers.Serializer,), fields)


def take(seen: QuerySet[AnyModel], permitted: QuerySet[AnyModel], pk: int, refusal: str) -> AnyModel:
    """The object: absent when it may not be seen, refused in words when it may be seen but not acted on."""
    found = seen.filter(pk=pk).first()
    if found is None:
        raise NotFound(_("There is no such object."))
    if not permitted.filter(pk=pk).exists():
        raise Forbidden(refusal)
    return found
