"""Spiders over the REST API: to look at; they come from the registry."""

from __future__ import annotations

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.rights import allowed
from apps.core.errors import NotFound
from apps.core.rest import ApiViewSet, checked_query, page, page_answer
from apps.spiders.models import Spider
from apps.spiders.serializers import SpiderPage, SpiderQuery, SpiderSchemaSerializer, SpiderSerializer


@extend_schema(tags=["spiders"])
class SpiderViewSet(ApiViewSet):
    """Spiders the caller may see."""

    serializer_class = SpiderSerializer
    lookup_field = "name"
    lookup_value_converter = "slug"

    def _spider(self, request: Request, name: str) -> Spider:
        seen = allowed(request.user, "view", Spider).select_related("project", "current_version")
        spider = seen.filter(name=name).first()
        if spider is None:
            raise NotFound(_("There is no spider %(name)s.") % {"name": name})
        return spider

    @extend_schema(summary="List spiders", parameters=[SpiderQuery], responses=SpiderPage)
    def list(self, request: Request) -> Response:
        query = checked_query(SpiderQuery, request)
        spiders = allowed(request.user, "view", Spider).select_related("project", "current_version")
        rows, following = page(request, spiders, key="name", **query)
        return page_answer(SpiderSerializer, rows, following)

    @extend_schema(summary="Show a spider", responses=SpiderSerializer)
    def retrieve(self, request: Request, name: str) -> Response:
        return Response(SpiderSerializer(self._spider(request, name)).data)

    @extend_schema(summary="Show what a spider takes and gives", responses=SpiderSchemaSerializer)
    @action(detail=True, url_path="schema")
    def schemas(self, request: Request, name: str) -> Response:
        version = self._spider(request, name).current_version
        if version is None:
            raise NotFound(_("Spider %(name)s has no version yet.") % {"name": name})
        return Response(SpiderSchemaSerializer(version).data)
