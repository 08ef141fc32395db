"""Machines that run things."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class Node(models.Model):
    """A machine with a worker and an engine. Free slots and memory are counted from its runs, never stored."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    executor = models.CharField(_("executor"), max_length=20)
    isolated = models.BooleanField(_("runs are isolated"), default=False)
    slots = models.PositiveIntegerField(_("slots"))
    memory_bytes = models.BigIntegerField(_("memory for runs"))
    cpus = models.FloatField(_("CPUs"))
    engine_version = models.CharField(_("engine"), max_length=100, blank=True)
    # Empty when all is well, else why nothing is started here: one sentence.
    trouble = models.TextField(_("trouble"), blank=True)
    warnings = models.JSONField(_("warnings"), default=list, blank=True)
    demo_site = models.CharField(_("demo site"), max_length=200, blank=True)
    worker = models.CharField(_("worker"), max_length=64, blank=True)
    # What a job's selector is compared with, for example {"zone": "eu", "browser": "yes"}.
    labels = models.JSONField(_("labels"), default=dict, blank=True)
    cordoned_at = models.DateTimeField(_("cordoned"), null=True, blank=True)
    # A node that is drained is cordoned; what still runs at this time is ended and tried again elsewhere.
    drain_until = models.DateTimeField(_("drained by"), null=True, blank=True)
    started_at = models.DateTimeField(_("worker started"))
    heartbeat_at = models.DateTimeField(_("last heartbeat"))

    class Meta:
        verbose_name = _("node")
        verbose_name_plural = _("nodes")

    def __str__(self) -> str:
        return self.name


class Pool(models.Model):
    """A limit that jobs share, typically one for a target site. What is used of it is counted from the runs."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    description = models.CharField(_("description"), max_length=200, blank=True)
    limit = models.PositiveSmallIntegerField(
        _("runs at once"), validators=[MinValueValidator(1), MaxValueValidator(10_000)]
    )

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        constraints = (models.CheckConstraint(condition=models.Q(limit__gte=1), name="pool_limit"),)

    def __str__(self) -> str:
        return self.name


class Placement(models.Model):
    """One row for the whole panel. Who takes runs from the queue locks it first: what is counted then stays true."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    max_running = models.PositiveIntegerField(_("runs at once"), null=True, blank=True)
    # While set nothing new starts anywhere.
    maintenance_since = models.DateTimeField(_("maintenance since"), null=True, blank=True)
    maintenance_by = models.CharField(_("maintenance by"), max_length=200, blank=True)
    maintenance_why = models.CharField(_("reason of the maintenance"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("placement")
        verbose_name_plural = _("placement")
        constraints = (models.CheckConstraint(condition=models.Q(id=1), name="one_placement"),)

    def __str__(self) -> str:
        return "placement"
