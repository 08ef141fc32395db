"""Runs that belong together."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.runs.states import Trigger
from apps.spiders.models import Project


class Batch(models.Model):
    """What one trigger has caused: a root job and those that follow it, the instants of a backfill, a table of inputs.

    All that decides about its runs is copied into it: later edits of jobs do not reach it.
    """

    class Kind(models.TextChoices):
        GRAPH = "graph", _("Jobs that follow each other")
        BACKFILL = "backfill", _("Backfill")
        INPUTS = "inputs", _("Table of inputs")

    rights_paths: ClassVar[dict[str, str]] = {
        "jobs.job": "job",
        "spiders.spider": "job__spider",
        "spiders.project": "project",
    }

    project = models.ForeignKey(Project, models.PROTECT, related_name="batches")
    # The root, or the one job all its runs are of.
    job = models.ForeignKey("jobs.Job", models.SET_NULL, null=True, blank=True, related_name="batches")
    job_name = models.CharField(max_length=200, blank=True)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    name = models.CharField(_("name"), max_length=200, blank=True)
    # Of a graph: nodes by key ({"job", "name", "join"}) and edges [from, to, condition]; see
    # docs/schedules.md.
    graph = models.JSONField(default=dict, blank=True)
    # The most of its runs that are under way at once; NULL: no limit of its own.
    concurrency = models.PositiveSmallIntegerField(_("runs at once"), null=True, blank=True)
    trigger = models.CharField(_("trigger"), max_length=10, choices=Trigger)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    actor = models.CharField(max_length=200)
    schedule = models.ForeignKey("jobs.Schedule", models.SET_NULL, null=True, blank=True, related_name="+")
    scheduled_for = models.DateTimeField(_("scheduled for"), null=True, blank=True)
    # The batch that this one takes up again from where it failed.
    origin = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(_("created"))
    canceled_at = models.DateTimeField(_("canceled"), null=True, blank=True)
    # All its runs are over. NULL: somebody has to look at it still.
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        verbose_name = _("batch")
        verbose_name_plural = _("batches")
        indexes = (
            models.Index(fields=("id",), name="batch_open", condition=models.Q(finished_at__isnull=True)),
            models.Index(fields=("job", "-id"), name="batch_by_job"),
            models.Index(fields=("project", "-id"), name="batch_by_project"),
        )

    def __str__(self) -> str:
        return f"batch {self.pk}"
