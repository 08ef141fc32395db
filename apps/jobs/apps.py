"""The jobs app."""

from importlib import import_module

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobsConfig(AppConfig):
    name = "apps.jobs"
    verbose_name = _("Jobs")

    def ready(self) -> None:
        import_module("apps.jobs.receivers")
