"""The spiders app."""

from django.apps import AppConfig


class SpidersConfig(AppConfig):
    name = "apps.spiders"
