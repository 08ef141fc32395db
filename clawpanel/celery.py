"""The Celery application; workers also carry the agent that follows this node's runs."""

from __future__ import annotations

import os
import warnings

from celery import Celery
from celery.exceptions import SecurityWarning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

# A worker that is root speaks to the engine and gives every run another user; it takes JSON only.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("clawpanel")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# By name: the agent needs the models, which are not there yet.
app.steps["worker"].add("apps.runs.agent.bootstep:AgentStep")
