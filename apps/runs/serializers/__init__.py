"""What the API shows of runs, nodes and pools, and what it takes."""

from apps.runs.serializers.runs import RunDetailSerializer

__all__ = ["RunDetailSerializer"]
