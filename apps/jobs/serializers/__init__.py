"""What the API shows and takes of jobs and their times."""

from apps.jobs.serializers.jobs import JobPage, JobQuery, JobSerializer, LimitsSerializer, RunJobSerializer, SpanField

__all__ = ["JobPage", "JobQuery", "JobSerializer", "LimitsSerializer", "RunJobSerializer", "SpanField"]
