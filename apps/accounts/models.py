"""People, and the tokens their programs use."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken


class User(AbstractUser):
    """A person who signs in."""

    class Theme(models.TextChoices):
        SYSTEM = "system", _("As the system")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    language = models.CharField(_("language"), max_length=10, blank=True)
    theme = models.CharField(_("theme"), max_length=10, choices=Theme, default=Theme.SYSTEM)
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)


class ApiToken(AbstractAuthToken):
    """A token of a user: only its hash is kept. Scope `read` may look, `run` may also start and stop, `write` all."""

    class Scope(models.TextChoices):
        READ = "read", _("Read")
        RUN = "run", _("Read and run")
        WRITE = "write", _("Everything the user may do")

    name = models.CharField(_("name"), max_length=100)
    scope = models.CharField(_("scope"), max_length=10, choices=Scope, default=Scope.WRITE)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta(AbstractAuthToken.Meta):
        abstract = False
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="one_token_name_a_user"),)

    def __str__(self) -> str:
        return f"{self.user_id}:{self.name}"
