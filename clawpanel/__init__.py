"""Puts the parts of ClawPanel together; nothing imports it."""

from clawpanel.celery import app as celery_app

__all__ = ["celery_app"]
