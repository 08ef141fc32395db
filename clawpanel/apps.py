"""The project as an app: it brings the management commands and the Celery application."""

from django.apps import AppConfig


class ClawPanelConfig(AppConfig):
    name = "clawpanel"

    def ready(self) -> None:
        # Not in clawpanel/__init__.py: the supervisor imports clawpanel.up and is to stay small.
        import clawpanel.celery  # noqa: F401
