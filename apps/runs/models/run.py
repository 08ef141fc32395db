"""A run, its attempts and its history."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.runs.models.batch import Batch
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
    # The part of the order that placement compares, as columns.
    memory_bytes = models.BigIntegerField()
    cpus = models.FloatField(default=1.0)
    pools = ArrayField(models.BigIntegerField(), default=list, blank=True)
    selector = models.JSONField(default=dict, blank=True)
    # The most runs of its job that may run at once; NULL: no limit.
    job_limit = models.PositiveSmallIntegerField(null=True, blank=True)
    # Of a run that a schedule has fired, and of one that stands for such a time: its parameters are of that time.
    # Neither has an index of its own: the unique ones below begin with them.
    schedule = models.ForeignKey(
        "jobs.Schedule", models.SET_NULL, null=True, blank=True, related_name="runs", db_index=False
    )
    scheduled_for = models.DateTimeField(_("scheduled for"), null=True, blank=True)
    batch = models.ForeignKey(Batch, models.SET_NULL, null=True, blank=True, related_name="runs", db_index=False)
    # Which part of its batch it is: the key of its node in the graph, the instant or the number of its row.
    batch_key = models.CharField(max_length=64, blank=True, db_default="")
    # It runs beside the other runs of its job: its batch has a limit of its own.
    apart = models.BooleanField(default=False, db_default=False)
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
    kill_requested_at = models.DateTimeField(null=True, blank=True)
    pause_requested_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(_("paused"), null=True, blank=True)
    # Time the current attempt has spent paused, without a pause that goes on: no limit counts it.
    paused_seconds = models.FloatField(default=0)
    # Not started by then: it ends as timed out. Set while it has never run.
    expires_at = models.DateTimeField(null=True, blank=True)
    # The limit over all attempts, known from the first start on.
    total_deadline_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    # Its attempts are exhausted and its order names a repair job that has not been asked for yet.
    repair_due = models.BooleanField(default=False)

    queued_at = models.DateTimeField(_("queued"))
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    exit_code = models.IntegerField(_("exit code"), null=True, blank=True)
    memory_warning = models.BooleanField(default=False)
    log_damaged = models.BooleanField(default=False)

    lines = models.BigIntegerField(_("lines"), default=0)
    warnings = models.BigIntegerField(_("warnings"), default=0)
    errors = models.BigIntegerField(_("errors"), default=0)
    # Those that are shown; with the discarded ones they number the next.
    items = models.BigIntegerField(_("items"), default=0)
    items_rejected = models.BigIntegerField(_("rejected items"), default=0)
    # Items of failed attempts that the order says are replaced by those of the next; they stay stored, marked.
    items_discarded = models.BigIntegerField(_("discarded items"), default=0)
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
            models.UniqueConstraint(
                fields=("schedule", "scheduled_for"),
                name="one_run_a_time",
                condition=models.Q(schedule__isnull=False),
            ),
            models.UniqueConstraint(
                fields=("batch", "batch_key"), name="one_run_a_place", condition=models.Q(batch__isnull=False)
            ),
        )
        indexes = (
            models.Index(
                fields=("priority", "queued_at", "id"), name="run_queue", condition=models.Q(state=State.QUEUED)
            ),
            models.Index(fields=("node", "state"), name="run_placed", condition=models.Q(state__in=PLACED)),
            models.Index(fields=("state", "-id"), name="run_active", condition=models.Q(state__in=ACTIVE)),
            models.Index(fields=("job", "-id"), name="run_by_job"),
            models.Index(
                fields=("project", "priority", "queued_at", "id"),
                name="run_queue_project",
                condition=models.Q(state=State.QUEUED),
            ),
            models.Index(fields=("retry_at",), name="run_retry", condition=models.Q(state=State.RETRY_WAIT)),
            models.Index(
                fields=("expires_at",),
                name="run_expires",
                condition=models.Q(state=State.QUEUED, expires_at__isnull=False),
            ),
            models.Index(fields=("id",), name="run_repair", condition=models.Q(repair_due=True)),
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
    # It failed through no fault of the spider: counted against the budget for that.
    infrastructure = models.BooleanField(default=False)
    items_discarded = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="one_attempt_a_number"),)

    def __str__(self) -> str:
        return f"run {self.run_id} attempt {self.number}"


# How leases changed hands: rare, and counted a node.
LEASE_EVENTS = ("adopted", "fenced")


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
        indexes = (
            models.Index(fields=("run", "id"), name="event_by_run"),
            models.Index(fields=("at",), name="event_of_leases", condition=models.Q(kind__in=LEASE_EVENTS)),
        )

    def __str__(self) -> str:
        return f"event {self.pk} of run {self.run_id}"
