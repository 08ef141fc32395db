"""The spiders app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SpidersConfig(AppConfig):
    name = "apps.spiders"
    verbose_name = _("Spiders")
