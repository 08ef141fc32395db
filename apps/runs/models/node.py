"""Machines that run things."""

from __future__ import annotations

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
    cordoned_at = models.DateTimeField(_("cordoned"), null=True, blank=True)
    started_at = models.DateTimeField(_("worker started"))
    heartbeat_at = models.DateTimeField(_("last heartbeat"))

    class Meta:
        verbose_name = _("node")
        verbose_name_plural = _("nodes")

    def __str__(self) -> str:
        return self.name
