"""When jobs run, and what became of each due time."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from django_celery_beat.models import PeriodicTask

# The task of the periodic task of a schedule. No beat sends it: the clock fires schedules from the database.
FIRE_TASK = "jobs.fire"


class ScheduleType(models.TextChoices):
    CRON = "cron", _("Cron")
    INTERVAL = "interval", _("Interval")
    ONCE = "once", _("Once")


class Misfire(models.TextChoices):
    """What becomes of due times that nobody could fire in time."""

    ONCE = "once", _("Run once if it is not too late")
    ALL = "all", _("Run each of them")
    SKIP = "skip", _("Skip them")


class Outcome(models.TextChoices):
    FIRED = "fired", _("Fired")
    SKIPPED = "skipped", _("Skipped")
    MISSED = "missed", _("Missed")
    FAILED = "failed", _("Failed to prepare")


class Schedule(models.Model):
    """A time of a job, compiled for firing.

    The periodic task and its crontab, interval or clocked row are the store that people edit in the admin too; a
    trigger of the database marks the schedule `stale` when they change, and it is read from them anew (see
    docs/schedules.md).
    """

    rights_paths: ClassVar[dict[str, str]] = {
        "jobs.job": "job",
        "spiders.spider": "job__spider",
        "spiders.project": "job__project",
    }

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="schedules", verbose_name=_("job"))
    # Not "schedule": beat itself asks a periodic task for its `schedule`.
    task = models.OneToOneField(
        PeriodicTask, models.CASCADE, related_name="job_schedule", verbose_name=_("periodic task")
    )
    name = models.CharField(_("name"), max_length=100, blank=True)
    type = models.CharField(_("type"), max_length=10, choices=ScheduleType)
    # Five fields, all resolved: no "@daily", no "~". Empty for the other types.
    expression = models.CharField(_("cron expression"), max_length=500, blank=True)
    # As a person wrote it; empty when it was changed in the admin.
    typed = models.CharField(max_length=500, blank=True)
    every_seconds = models.PositiveBigIntegerField(_("interval (seconds)"), null=True, blank=True)
    # Intervals are counted from here.
    anchor_at = models.DateTimeField(_("counted from"), null=True, blank=True)
    once_at = models.DateTimeField(_("once at"), null=True, blank=True)
    timezone = models.CharField(_("time zone"), max_length=64, default="UTC")
    start_at = models.DateTimeField(_("not before"), null=True, blank=True)
    end_at = models.DateTimeField(_("not after"), null=True, blank=True)
    # Laid over the job's own; may hold templates.
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    jitter_seconds = models.PositiveIntegerField(_("jitter (seconds)"), default=0)
    misfire = models.CharField(_("when a time was missed"), max_length=10, choices=Misfire, default=Misfire.ONCE)
    misfire_grace_seconds = models.PositiveIntegerField(_("grace (seconds)"), default=600)
    # `all`: the most that are made up for, the newest, and the pause between them.
    misfire_cap = models.PositiveSmallIntegerField(
        _("at most"), default=10, validators=[MinValueValidator(1), MaxValueValidator(1000)]
    )
    misfire_spacing_seconds = models.PositiveIntegerField(_("pause between them (seconds)"), default=0)
    enabled = models.BooleanField(_("enabled"), default=True)
    # While paused each due time is kept in the ledger as skipped.
    paused_at = models.DateTimeField(_("paused"), null=True, blank=True)
    paused_until = models.DateTimeField(_("paused until"), null=True, blank=True)
    paused_by = models.CharField(_("paused by"), max_length=200, blank=True)
    paused_why = models.CharField(_("reason of the pause"), max_length=200, blank=True)
    # The next nominal time, and when it is fired: later by the jitter. NULL: never again.
    next_slot_at = models.DateTimeField(_("next time"), null=True, blank=True)
    next_fire_at = models.DateTimeField(null=True, blank=True)
    # What is stored of its rule is newer than what was compiled.
    stale = models.BooleanField(default=False)
    # Why it cannot fire: one sentence in English for the log, shown to people. Empty when all is well.
    trouble = models.TextField(_("trouble"), blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        constraints = (
            models.CheckConstraint(condition=models.Q(type__in=ScheduleType.values), name="schedule_type"),
            models.CheckConstraint(
                condition=models.Q(every_seconds__isnull=True) | models.Q(every_seconds__gte=1),
                name="schedule_interval",
            ),
        )
        indexes = (
            models.Index(
                fields=("next_fire_at", "id"),
                name="schedule_due",
                condition=models.Q(enabled=True, next_fire_at__isnull=False),
            ),
            models.Index(fields=("id",), name="schedule_stale", condition=models.Q(stale=True)),
        )

    def __str__(self) -> str:
        return f"schedule {self.pk} of job {self.job_id}"


class Firing(models.Model):
    """A due time of a schedule and what became of it. One row a time; many missed ones in a row may share one."""

    rights_paths: ClassVar[dict[str, str]] = Schedule.rights_paths

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="firings")
    # The ledger outlives the schedule.
    schedule = models.ForeignKey(Schedule, models.SET_NULL, null=True, blank=True, related_name="firings")
    scheduled_for = models.DateTimeField(_("due"))
    # Of a row that stands for several times: the last of them, and how many.
    until = models.DateTimeField(null=True, blank=True)
    times = models.PositiveIntegerField(default=1)
    outcome = models.CharField(_("outcome"), max_length=10, choices=Outcome)
    # "", "overlap_skip", "misfire_skip", "paused", "maintenance", "scheduling_off", "param_error", …
    reason = models.CharField(_("reason"), max_length=40, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, blank=True, related_name="+")
    decided_at = models.DateTimeField(_("decided"))

    class Meta:
        verbose_name = _("due time")
        verbose_name_plural = _("due times")
        constraints = (
            models.UniqueConstraint(fields=("schedule", "scheduled_for"), name="one_firing_a_time"),
            models.CheckConstraint(condition=models.Q(outcome__in=Outcome.values), name="firing_outcome"),
        )
        indexes = (models.Index(fields=("job", "-scheduled_for", "-id"), name="firing_by_job"),)

    def __str__(self) -> str:
        return f"due time {self.pk} of job {self.job_id}"


class Clock(models.Model):
    """One row for the whole panel: the switch of all scheduling, and the latest time its clock has seen."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    off_since = models.DateTimeField(_("scheduling off since"), null=True, blank=True)
    off_by = models.CharField(_("scheduling off by"), max_length=200, blank=True)
    off_why = models.CharField(_("reason"), max_length=200, blank=True)
    # The last such time: {"since", "until", "by", "why"}. What was due then is skipped by a clock that comes by later.
    last_off = models.JSONField(default=dict, blank=True, db_default={})
    # By the clock of the database: a time before it means that the clock was set back.
    seen_at = models.DateTimeField(null=True, blank=True)
    # By what rules of its zone next times were reckoned: {zone: digest}.
    zones = models.JSONField(default=dict, blank=True, db_default={})

    class Meta:
        verbose_name = _("clock")
        verbose_name_plural = _("clock")
        constraints = (models.CheckConstraint(condition=models.Q(id=1), name="one_clock"),)

    def __str__(self) -> str:
        return "clock"
