"""Jobs: what to run and how."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from apps.spiders.models import Project, Spider, Version, extra_permissions


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
