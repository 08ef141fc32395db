"""Webhooks of a job."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import F, QuerySet

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.models import Hook, Job


def visible_hooks(user: User | AnonymousUser) -> QuerySet[Hook]:
    """Those of jobs that this person may schedule: a webhook is a way to start runs. Revoked ones last."""
    rows = allowed(user, "schedule", Hook).select_related("job", "created_by")
    return rows.order_by(F("revoked_at").asc(nulls_first=True), "name", "pk")


def hooks_of(job: Job) -> QuerySet[Hook]:
    """Of a job the caller was allowed to schedule; in the same order."""
    rows = Hook.objects.filter(job=job).select_related("created_by")
    return rows.order_by(F("revoked_at").asc(nulls_first=True), "name", "pk")
