"""Ways in and out over HTTP: who may start a job by a webhook, and which hosts a job may ask before it starts."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class Hook(models.Model):
    """A webhook that runs a job. `url`: who knows the address may call it; `hmac`: the body is signed as well."""

    class Kind(models.TextChoices):
        URL = "url", _("Secret address")
        HMAC = "hmac", _("Signed body (HMAC-SHA256)")

    rights_paths: ClassVar[dict[str, str]] = {
        "jobs.job": "job",
        "spiders.spider": "job__spider",
        "spiders.project": "job__project",
    }

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="hooks", verbose_name=_("job"))
    name = models.CharField(_("name"), max_length=100)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind, default=Kind.URL)
    # SHA-256 of the secret part of the address; what the address is told once only.
    token_digest = models.CharField(max_length=64, unique=True)
    token_prefix = models.CharField(_("begins with"), max_length=12)
    # The key of the signatures, encrypted; empty for the kind `url`.
    sealed_key = models.BinaryField(default=b"", blank=True)
    # {parameter: dotted path in the body}; empty: parameters are the body's own names.
    mapping = models.JSONField(_("mapping"), default=dict, blank=True)
    per_minute = models.PositiveSmallIntegerField(
        _("calls a minute"), default=60, validators=[MinValueValidator(1), MaxValueValidator(6000)]
    )
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(_("created"))

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        constraints = (models.UniqueConstraint(fields=("job", "name"), name="one_hook_name_a_job"),)

    def __str__(self) -> str:
        return f"{self.name} (#{self.pk})"


class CallHost(models.Model):
    """A host that jobs may ask for parameters before they start."""

    host = models.CharField(_("host"), max_length=253, unique=True)
    note = models.CharField(_("note"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("created"))

    class Meta:
        verbose_name = _("host for calls")
        verbose_name_plural = _("hosts for calls")

    def __str__(self) -> str:
        return self.host
