"""The panel app."""

from django.apps import AppConfig


class PanelConfig(AppConfig):
    name = "apps.panel"
