"""The Celery application; workers also carry the agent that follows this node's runs."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

app = Celery("clawpanel")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
