"""A job: what to run and how."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from apps.jobs.models.graph import Join
from apps.spiders.models import Project, Spider, Version, extra_permissions


class Overlap(models.TextChoices):
    SKIP = "skip", _("Skip the new run")
    QUEUE = "queue", _("Let the new run wait")
    ALLOW = "allow", _("Run side by side")
    REPLACE = "replace", _("Stop the earlier run")


class NodeLost(models.TextChoices):
    RETRY = "retry", _("Try again on another node")
    WAIT = "wait", _("Wait for the node")


class Job(models.Model):
    """A spider with parameters and limits, ready to be run."""

    rights_paths: ClassVar[dict[str, str]] = {
        "jobs.job": "",
        "spiders.spider": "spider",
        "spiders.project": "project",
    }

    project = models.ForeignKey(Project, models.PROTECT, related_name="jobs", verbose_name=_("project"))
    spider = models.ForeignKey(Spider, models.PROTECT, related_name="jobs", verbose_name=_("spider"))
    version = models.ForeignKey(
        Version,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("version"),
        help_text=_("Empty: always the spider's current version."),
    )
    name = models.CharField(_("name"), max_length=200)
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    # {parameter name: Secret id}; the values themselves never leave apps.spiders.secrets.
    secrets = models.JSONField(_("secret parameters"), default=dict, blank=True)
    memory_mb = models.PositiveIntegerField(
        _("memory (MB)"), default=512, validators=[MinValueValidator(32), MaxValueValidator(1024 * 1024)]
    )
    cpus = models.FloatField(_("CPUs"), default=1.0, validators=[MinValueValidator(0.05), MaxValueValidator(256)])
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (seconds)"), default=3600, validators=[MinValueValidator(1), MaxValueValidator(30 * 86400)]
    )
    grace_seconds = models.PositiveIntegerField(
        _("grace after stop (seconds)"), default=10, validators=[MinValueValidator(0), MaxValueValidator(600)]
    )
    priority = models.PositiveSmallIntegerField(
        _("priority"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(9)],
        help_text=_("1 is the most urgent, 9 the least."),
    )
    env = models.JSONField(_("environment variables"), default=dict, blank=True)
    overlap = models.CharField(
        _("when it is already active"),
        max_length=10,
        choices=Overlap,
        default=Overlap.SKIP,
        help_text=_("What a new launch does while an earlier run of the job is not over."),
    )
    # queue: the most that wait; allow: the most that run at once.
    overlap_max = models.PositiveSmallIntegerField(
        _("at most"), null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(1000)]
    )
    start_seconds = models.PositiveIntegerField(_("limit for the start (seconds)"), null=True, blank=True)
    idle_seconds = models.PositiveIntegerField(_("limit without a sign of life (seconds)"), null=True, blank=True)
    total_seconds = models.PositiveIntegerField(_("limit over all attempts (seconds)"), null=True, blank=True)
    queue_seconds = models.PositiveIntegerField(_("limit in the queue (seconds)"), null=True, blank=True)
    pause_seconds = models.PositiveIntegerField(_("longest pause (seconds)"), null=True, blank=True)
    # See apps.runs.policies.RetryPolicy; {} is no retry beyond the infrastructure budget.
    retry = models.JSONField(_("retries"), default=dict, blank=True)
    on_node_lost = models.CharField(_("when its node is lost"), max_length=10, choices=NodeLost, default=NodeLost.RETRY)
    pools = models.ManyToManyField("runs.Pool", blank=True, related_name="jobs", verbose_name=_("pools"))
    selector = models.JSONField(
        _("node labels"), default=dict, blank=True, help_text=_("Labels that a node must have to run it.")
    )
    repair_job = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("repair job"),
        help_text=_("Run when all attempts have failed, with the failed run's id in its parameter failed_run."),
    )
    # Laid behind the command of the spider, one argument each; may hold templates.
    arguments = models.JSONField(_("command arguments"), default=list, blank=True)
    # {name: {"method", "url", "headers", "secret_headers", "body"}}: asked just before a run, see docs/schedules.md.
    calls = models.JSONField(_("calls"), default=dict, blank=True)
    join = models.CharField(
        _("waits for"),
        max_length=10,
        choices=Join,
        default=Join.ALL,
        help_text=_("Which of its upstream jobs must be done before it runs."),
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        permissions = extra_permissions("job")
        constraints = (
            models.UniqueConstraint(fields=("project", "name"), name="one_job_name_a_project"),
            models.CheckConstraint(condition=models.Q(priority__gte=1, priority__lte=9), name="job_priority"),
        )

    def __str__(self) -> str:
        return f"{self.name} (#{self.pk})"


class JobUserObjectPermission(UserObjectPermissionBase):
    """Direct foreign key, so that a grant dies with its object."""

    content_object = models.ForeignKey(Job, models.CASCADE)


class JobGroupObjectPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(Job, models.CASCADE)
