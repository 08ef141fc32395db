"""Runs, nodes and pools over the REST API. A run is asked for through its job: see apps.jobs.api."""

from apps.runs.api.places import NodeViewSet, PoolViewSet
from apps.runs.api.runs import RunViewSet, detail_of

__all__ = ["NodeViewSet", "PoolViewSet", "RunViewSet", "detail_of"]
