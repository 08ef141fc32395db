"""Projects, spiders, their immutable versions, and secrets."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

NAME_PATTERN = r"^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$"
name_validator = RegexValidator(
    NAME_PATTERN, _("Use 1 to 64 of a-z, 0-9, - and _, beginning and ending with a letter or digit.")
)

# What may be granted on a project, spider or job. `view` is Django's own permission of that name.
EXTRA_ACTIONS = ("view_log", "view_data", "export_data", "run", "stop", "edit", "schedule", "manage")


def extra_permissions(model: str) -> tuple[tuple[str, str], ...]:
    """The guardian permissions of a model beside Django's four, as (codename, name)."""
    return tuple((f"{action}_{model}", f"Can {action.replace('_', ' ')} {model}") for action in EXTRA_ACTIONS)


def in_language(texts: dict[str, Any], fallback: str = "") -> str:
    """The text for the active language of `{"en": …, "zh-hans": …}`."""
    language = (get_language() or "en").lower()
    for key in (language, language.split("-")[0], "en", *texts):
        if texts.get(key):
            return str(texts[key])
    return fallback


class Project(models.Model):
    """Groups spiders and jobs and carries default permissions."""

    # Anchors of permission, as {model label: lookup path from this model}; read by apps.accounts.rights.
    rights_paths: ClassVar[dict[str, str]] = {"spiders.project": ""}

    slug = models.CharField(_("slug"), max_length=64, unique=True, validators=[name_validator])
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    max_running = models.PositiveSmallIntegerField(
        _("runs at once"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("The most runs of the project that run at the same time. Empty: no limit."),
    )
    created_at = models.DateTimeField(_("created"))

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")
        permissions = extra_permissions("project")

    def __str__(self) -> str:
        return self.slug


class CodeArchive(models.Model):
    """The files of a version as a tar archive packed with zstd, kept once per content."""

    digest = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.digest


class Spider(models.Model):
    """A program that crawls."""

    rights_paths: ClassVar[dict[str, str]] = {"spiders.spider": "", "spiders.project": "project"}

    class Kind(models.TextChoices):
        PYTHON = "python", _("Python class")
        SCRAPY = "scrapy", _("Scrapy spider")
        COMMAND = "command", _("Command")

    project = models.ForeignKey(Project, models.PROTECT, related_name="spiders", verbose_name=_("project"))
    name = models.CharField(_("name"), max_length=64, unique=True, validators=[name_validator])
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    titles = models.JSONField(_("titles"), default=dict, blank=True)
    descriptions = models.JSONField(_("descriptions"), default=dict, blank=True)
    author = models.CharField(_("author"), max_length=200, blank=True)
    max_running = models.PositiveSmallIntegerField(
        _("runs at once"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("The most runs of the spider that run at the same time. Empty: no limit."),
    )
    current_version = models.ForeignKey(
        "Version", models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("current version")
    )
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        verbose_name = _("spider")
        verbose_name_plural = _("spiders")
        permissions = extra_permissions("spider")
        constraints = (
            models.CheckConstraint(condition=models.Q(kind__in=("python", "scrapy", "command")), name="spider_kind"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        return in_language(self.titles, self.name)

    @property
    def description(self) -> str:
        return in_language(self.descriptions)


class Version(models.Model):
    """An immutable snapshot of a spider's code, requirements and schemas."""

    rights_paths: ClassVar[dict[str, str]] = {"spiders.spider": "spider", "spiders.project": "spider__project"}

    spider = models.ForeignKey(Spider, models.PROTECT, related_name="versions", verbose_name=_("spider"))
    name = models.CharField(_("version"), max_length=64)
    digest = models.CharField(_("digest"), max_length=64)
    code = models.ForeignKey(CodeArchive, models.PROTECT, related_name="+")
    command = models.JSONField(_("command"), help_text=_("The argument list a run executes."))
    requirements = models.TextField(_("requirements"), blank=True)
    parameter_schema = models.JSONField(_("parameter schema"))
    item_schema = models.JSONField(_("item schema"), null=True, blank=True)
    unique_key = models.JSONField(_("unique key"), default=list, blank=True)
    default_limits = models.JSONField(_("default limits"), default=dict, blank=True)
    # By code, as text: whether it is a success, and what it means in each language.
    exit_codes = models.JSONField(_("exit codes"), default=dict, blank=True)
    created_at = models.DateTimeField(_("created"))

    class Meta:
        verbose_name = _("version")
        verbose_name_plural = _("versions")
        constraints = (models.UniqueConstraint(fields=("spider", "digest"), name="one_version_a_content"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.digest[:8]})"


class Secret(models.Model):
    """An encrypted value; runs and jobs carry only its id."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="secrets")
    label = models.CharField(_("label"), max_length=200)
    ciphertext = models.BinaryField()
    created_at = models.DateTimeField(_("created"))
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"secret {self.pk}"


class ProjectUserObjectPermission(UserObjectPermissionBase):
    """Direct foreign key, so that a grant dies with its object."""

    content_object = models.ForeignKey(Project, models.CASCADE)


class ProjectGroupObjectPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(Project, models.CASCADE)


class SpiderUserObjectPermission(UserObjectPermissionBase):
    content_object = models.ForeignKey(Spider, models.CASCADE)


class SpiderGroupObjectPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(Spider, models.CASCADE)
