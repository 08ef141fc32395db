"""Jobs and their times over the REST API."""

from apps.jobs.api.jobs import JobViewSet

__all__ = ["JobViewSet"]
