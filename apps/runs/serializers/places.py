"""Nodes and pools, as the API shows and takes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from apps.core.durations import read_duration
from apps.core.errors import Invalid
from apps.core.rest import Strict, page_of
from apps.runs.places import LARGEST_POOL
from apps.runs.selectors import NodeGlance, PoolGlance

STATES = ("ready", "closed", "draining", "silent", "trouble")


class NodeSerializer(serializers.Serializer[NodeGlance]):
    """A machine with what its runs take of it, counted now."""

    id = serializers.IntegerField(source="node.pk")
    name = serializers.CharField(source="node.name")
    state = serializers.ChoiceField(choices=STATES, help_text="The one word that matters most.")
    executor = serializers.CharField(source="node.executor")
    engine_version = serializers.CharField(source="node.engine_version")
    isolated = serializers.BooleanField(source="node.isolated")
    slots = serializers.IntegerField(source="node.slots")
    slots_used = serializers.IntegerField(source="runs")
    memory_bytes = serializers.IntegerField(source="node.memory_bytes")
    memory_used_bytes = serializers.IntegerField(source="memory_bytes")
    cpus = serializers.FloatField(source="node.cpus")
    cpus_used = serializers.FloatField(source="cpus", help_text="The sum its runs ask for.")
    labels = serializers.DictField(source="node.labels", child=serializers.CharField())
    runs_taken_over_24h = serializers.IntegerField(
        source="taken_over", help_text="Runs a worker of this node took over from one that had gone."
    )
    runs_fenced_24h = serializers.IntegerField(
        source="fenced", help_text="Runs a worker of this node, frozen or cut off meanwhile, found taken by another."
    )
    trouble = serializers.CharField(source="node.trouble", help_text="Why nothing is started there; empty when well.")
    warnings = serializers.ListField(source="node.warnings", child=serializers.CharField())
    cordoned_at = serializers.DateTimeField(source="node.cordoned_at", allow_null=True)
    drain_until = serializers.DateTimeField(source="node.drain_until", allow_null=True)
    started_at = serializers.DateTimeField(source="node.started_at")
    heartbeat_at = serializers.DateTimeField(source="node.heartbeat_at")


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class SpanField(serializers.Field[int, Any, Any, Any]):
    """Seconds as a number, or a text such as "30 min"."""

    def to_internal_value(self, data: Any) -> int:
        try:
            return read_duration(data)
        except Invalid as error:
            raise ValidationError(error.message) from error

    def to_representation(self, value: Any) -> Any:
        return value


class DrainSerializer(Strict):
    """How long what runs there may go on."""

    within = SpanField(help_text="Seconds, or a text such as `30 min`; at most 7 days.")


class LabelsSerializer(Strict):
    """The labels of a node, all at once."""

    labels = serializers.DictField(child=serializers.CharField(allow_blank=True))


class PoolSerializer(Strict):
    """A limit that jobs share."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=64)
    limit = serializers.IntegerField(min_value=1, max_value=LARGEST_POOL, help_text="The most runs at once.")
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)
    used = serializers.IntegerField(read_only=True, help_text="Runs that are in it now.")
    jobs = serializers.IntegerField(read_only=True, help_text="Jobs that use it.")


class DeletePoolQuery(Strict):
    """What becomes of the jobs of a pool that is deleted."""

    detach = serializers.BooleanField(default=False, help_text="Its jobs shall run without it.")


def pool_row(glance: PoolGlance) -> dict[str, Any]:
    pool = glance.pool
    shown = {"id": pool.pk, "name": pool.name, "limit": pool.limit, "description": pool.description}
    return {**shown, "used": glance.used, "jobs": glance.jobs}


NodePage = page_of(NodeSerializer, "NodePage")
PoolPage = page_of(PoolSerializer, "PoolPage")
