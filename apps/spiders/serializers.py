"""Spiders as the API shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.core.rest import NamePageQuery, page_of
from apps.spiders.models import Spider


class SpiderSerializer(serializers.Serializer[Spider]):
    """A spider; title and description in the language of the request."""

    name = serializers.CharField()
    project = serializers.CharField(source="project.slug")
    kind = serializers.ChoiceField(choices=Spider.Kind.choices)
    version = serializers.CharField(source="current_version.name", default=None, allow_null=True)
    title = serializers.CharField()
    description = serializers.CharField()
    author = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class SpiderSchemaSerializer(serializers.Serializer[Any]):
    """What a spider takes and gives, as JSON Schema."""

    version = serializers.CharField(source="name")
    parameter_schema = serializers.DictField()
    item_schema = serializers.DictField(allow_null=True)
    unique_key = serializers.ListField(child=serializers.CharField())
    default_limits = serializers.DictField()


class SpiderQuery(NamePageQuery):
    """Filters of the list of spiders."""


SpiderPage = page_of(SpiderSerializer, "SpiderPage")
