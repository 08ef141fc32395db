"""A run, its attempts and its history."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.runs.models.node import Node
from apps.runs.states import ACTIVE, PLACED, State, Trigger
from apps.spiders.models import Project, Spider, Version


class Run(models.Model):
    """One logical execution: a frozen order (`spec`) and what became of it. Only `services.move` writes `state`."""

    rights_paths: ClassVar[dict[str, str]] = {
        "jobs.job": "job",
        "spiders.spider": "spider",
        "spiders.project": "project",
    }

    project = models.ForeignKey(Project, models.PROTECT, related_name="runs")
    # A run outlives its job: everything it needs is in its spec.
    job = models.ForeignKey("jobs.Job", models.SET_NULL, null=True, blank=True, related_name="runs")
    job_name = models.CharField(max_length=200, blank=True)
    spider = models.ForeignKey(Spider, models.PROTECT, related_name="runs")
    version = models.ForeignKey(Version, models.PROTECT, related_name="+")
    state = models.CharField(_("status"), max_length=12, choices=State, default=State.QUEUED)
    reason = models.CharField(_("reason"), max_length=40, blank=True)
    # Values for the sentence of the reason, for example {"exit_code": 3}.
    detail = models.JSONField(default=dict, blank=True)
    priority = models.PositiveSmallIntegerField(_("priority"), default=5)
    trigger = models.CharField(_("trigger"), max_length=10, choices=Trigger)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    # NULL and not "": the unique constraint must ignore runs without a key.
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    request_id = models.UUIDField(unique=True)
    # {"parameters", "secrets": {name: Secret id}, "env", "command", "requirements", "limits": {...}}
    spec = models.JSONField()
    memory_bytes = models.BigIntegerField()
    # First day of the month of queueing: names the partition of its log and items.
    month = models.DateField()

    node = models.ForeignKey(Node, models.PROTECT, null=True, blank=True, related_name="runs")
    worker = models.CharField(max_length=64, blank=True)
    token = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    # Why the stop was asked: "user", "run_timeout", …
    stop_cause = models.CharField(max_length=40, blank=True)

    queued_at = models.DateTimeField(_("queued"))
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    exit_code = models.IntegerField(_("exit code"), null=True, blank=True)
    memory_warning = models.BooleanField(default=False)
    log_damaged = models.BooleanField(default=False)

    lines = models.BigIntegerField(_("lines"), default=0)
    warnings = models.BigIntegerField(_("warnings"), default=0)
    errors = models.BigIntegerField(_("errors"), default=0)
    items = models.BigIntegerField(_("items"), default=0)
    items_rejected = models.BigIntegerField(_("rejected items"), default=0)
    requests = models.BigIntegerField(_("requests"), default=0)
    first_error_line = models.BigIntegerField(null=True, blank=True)
    memory_peak_bytes = models.BigIntegerField(default=0)
    progress = models.JSONField(null=True, blank=True)
    stats = models.JSONField(default=dict, blank=True)
    output = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        constraints = (
            models.CheckConstraint(condition=models.Q(state__in=State.values), name="run_state"),
            models.UniqueConstraint(fields=("project", "idempotency_key"), name="one_run_a_key"),
        )
        indexes = (
            models.Index(
                fields=("priority", "queued_at", "id"), name="run_queue", condition=models.Q(state=State.QUEUED)
            ),
            models.Index(fields=("node", "state"), name="run_placed", condition=models.Q(state__in=PLACED)),
            models.Index(fields=("state", "-id"), name="run_active", condition=models.Q(state__in=ACTIVE)),
            models.Index(fields=("job", "-id"), name="run_by_job"),
            models.Index(fields=("spider", "-id"), name="run_by_spider"),
            models.Index(fields=("project", "-id"), name="run_by_project"),
            models.Index(fields=("state", "-id"), name="run_by_state"),
            models.Index(fields=("-queued_at", "-id"), name="run_by_time"),
        )

    def __str__(self) -> str:
        return f"run {self.pk}"


class Attempt(models.Model):
    """One container or process of a run, with how far its spools are stored."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField(_("attempt"))
    node = models.ForeignKey(Node, models.PROTECT, related_name="+")
    executor = models.CharField(max_length=20)
    run_dir = models.TextField()
    engine_ref = models.CharField(max_length=200, blank=True)
    environment = models.CharField(max_length=300, blank=True)
    out_offset = models.BigIntegerField(default=0)
    records_offset = models.BigIntegerField(default=0)
    # Inside a line longer than the cap whose head is stored already.
    out_cut = models.BooleanField(default=False)
    records_cut = models.BooleanField(default=False)
    claimed_at = models.DateTimeField()
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    exit_code = models.IntegerField(_("exit code"), null=True, blank=True)
    oom_killed = models.BooleanField(default=False)
    reason = models.CharField(max_length=40, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    lines = models.BigIntegerField(default=0)
    items = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="one_attempt_a_number"),)

    def __str__(self) -> str:
        return f"run {self.run_id} attempt {self.number}"


class RunEvent(models.Model):
    """A change of state or a note, written in the transaction that made it."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=20, default="state")
    from_state = models.CharField(max_length=12, blank=True)
    to_state = models.CharField(max_length=12, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=40, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    actor = models.CharField(max_length=200)

    class Meta:
        indexes = (models.Index(fields=("run", "id"), name="event_by_run"),)

    def __str__(self) -> str:
        return f"event {self.pk} of run {self.run_id}"
