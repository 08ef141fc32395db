"""Which jobs follow which."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class Condition(models.TextChoices):
    """What the upstream run must have come to. A canceled or skipped run is neither a success nor a failure."""

    SUCCESS = "success", _("when it succeeds")
    FAILURE = "failure", _("when it fails")
    ALWAYS = "always", _("in any case")


class Join(models.TextChoices):
    ALL = "all", _("all of them")
    ANY = "any", _("any of them")


class Dependency(models.Model):
    """An edge: `job` runs after `upstream`. Both belong to one project; there is no way round in a circle."""

    rights_paths: ClassVar[dict[str, str]] = {
        "jobs.job": "job",
        "spiders.spider": "job__spider",
        "spiders.project": "job__project",
    }

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="dependencies", verbose_name=_("job"))
    upstream = models.ForeignKey("jobs.Job", models.CASCADE, related_name="dependents", verbose_name=_("upstream job"))
    condition = models.CharField(_("condition"), max_length=10, choices=Condition, default=Condition.SUCCESS)

    class Meta:
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        constraints = (
            models.UniqueConstraint(fields=("job", "upstream"), name="one_dependency_a_pair"),
            models.CheckConstraint(condition=~models.Q(job=models.F("upstream")), name="dependency_on_another"),
        )

    def __str__(self) -> str:
        return f"job {self.job_id} after job {self.upstream_id}"
