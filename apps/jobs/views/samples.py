"""What templates on a form are tried with."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from apps.core.schema_forms import Render
from apps.jobs.models import Job
from apps.jobs.services.template_names import known_in_parameters, samples
from apps.spiders.models import Spider


def samples_for(request: HttpRequest, *, spider: Spider, job: Job | None = None) -> Render:
    """For the job, or one of the spider that is not made yet. Asks the database only when there is a template."""
    return _Samples(request, spider, job)


class _Samples:
    def __init__(self, request: HttpRequest, spider: Spider, job: Job | None) -> None:
        self._request, self._spider, self._job = request, spider, job

    def __call__(self, text: str) -> Any:
        return self._render(text)

    @cached_property
    def _render(self) -> Render:
        draft = draft_of(self._request, spider=self._spider, job=self._job)
        return samples(draft, known_in_parameters(draft), now=timezone.now())


def draft_of(request: HttpRequest, *, spider: Spider, job: Job | None = None) -> Job:
    """A job that is not saved, with as much of it as templates may name; calls as they are typed beside them."""
    draft = Job(spider=spider, project=spider.project, name=request.POST.get("name", "")[:200])
    if job is not None:
        draft.pk, draft.name, draft.calls, draft.secrets = job.pk, job.name, job.calls, job.secrets
    if "calls" in request.POST:
        draft.calls = _typed_calls(request.POST["calls"])
    return draft


def _typed_calls(text: str) -> dict[str, Any]:
    try:
        typed = json.loads(text[:100_000] or "{}")
    except (ValueError, RecursionError):
        return {}
    return typed if isinstance(typed, dict) else {}
