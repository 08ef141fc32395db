"""Batches and the edges between jobs, as the API shows and takes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.core.rest import LARGEST_KEY, PageQuery, Strict, page_of
from apps.jobs.models import Condition, Join
from apps.jobs.selectors.graph import Neighbour
from apps.jobs.serializers.groups import GroupSerializer
from apps.jobs.services.graph import MOST_UPSTREAMS
from apps.runs.models import Batch
from apps.runs.selectors.batches import batch_state
from apps.runs.states import State, Trigger


class BatchSerializer(GroupSerializer):
    """What one trigger has caused: jobs that follow each other, a backfill or a table of inputs."""

    state = serializers.SerializerMethodField(help_text="Of all of it, in the words of a run.")
    job_name = serializers.CharField()
    project = serializers.CharField(source="project.slug")
    trigger = serializers.ChoiceField(choices=Trigger.choices)
    scheduled_for = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.ChoiceField(choices=State.choices))
    def get_state(self, batch: Batch) -> str:
        return batch_state(batch, self.context["progress"][batch.pk])


class BatchNodeSerializer(serializers.Serializer[Any]):
    """A job in the graph of a batch. What the caller may not see has no name and no run."""

    key = serializers.CharField(source="node.key")
    job = serializers.IntegerField(source="job_id", allow_null=True)
    name = serializers.CharField()
    state = serializers.CharField(help_text="Empty: a job outside that has never finished a run.")
    message = serializers.CharField(source="said", help_text="Why it waits, or why it ended so; one sentence.")
    run = serializers.IntegerField(source="run.pk", default=None, allow_null=True)
    join = serializers.ChoiceField(source="node.join", choices=Join.choices)
    outside = serializers.BooleanField(source="node.outside", help_text="Not in the batch: its newest run counts.")
    taken_over = serializers.SerializerMethodField(help_text="From the batch that this one goes on from.")

    def get_taken_over(self, view: Any) -> bool:
        return view.node.settled is not None


class BatchEdgeSerializer(serializers.Serializer[Any]):
    upstream = serializers.CharField(help_text="Key of a node.")
    key = serializers.CharField(help_text="Key of the node that follows it.")
    condition = serializers.ChoiceField(choices=Condition.choices)


class BatchDetailSerializer(BatchSerializer):
    """With its graph; of a backfill or a table of inputs there is none."""

    nodes = serializers.SerializerMethodField()
    edges = serializers.SerializerMethodField()

    @extend_schema_field(BatchNodeSerializer(many=True))
    def get_nodes(self, _batch: Batch) -> Any:
        return BatchNodeSerializer(self.context["nodes"], many=True).data

    @extend_schema_field(BatchEdgeSerializer(many=True))
    def get_edges(self, _batch: Batch) -> Any:
        return BatchEdgeSerializer(self.context["edges"], many=True).data


class BatchQuery(PageQuery):
    """Which batches are listed."""

    job = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_KEY)
    kind = serializers.ChoiceField(required=False, choices=Batch.Kind.choices)
    open = serializers.BooleanField(required=False, allow_null=True, default=None, help_text="Those that go on still.")


class UpstreamSerializer(Strict):
    """A job that is followed."""

    job = serializers.IntegerField(help_text="Its id.")
    name = serializers.CharField(read_only=True, help_text="`#<id>` where the caller may not see it.")
    condition = serializers.ChoiceField(choices=Condition.choices, default=Condition.SUCCESS.value)


class DependenciesSerializer(Strict):
    """What a job follows, all of it: what is not sent is gone."""

    upstreams = UpstreamSerializer(many=True, max_length=MOST_UPSTREAMS)  # type: ignore[call-arg]  # of the list
    join = serializers.ChoiceField(choices=Join.choices, default=Join.ALL.value)
    downstreams = UpstreamSerializer(many=True, read_only=True)


def neighbour_row(each: Neighbour) -> dict[str, Any]:
    return {"job": each.id, "name": each.name, "condition": each.condition}


BatchPage = page_of(BatchSerializer, "BatchPage")
