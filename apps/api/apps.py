"""The api app."""

from importlib import import_module

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "apps.api"

    def ready(self) -> None:
        # drf-spectacular finds its extensions when their module is imported.
        import_module("apps.api.schema")
