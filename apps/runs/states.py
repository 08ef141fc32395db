"""The words of a run's life: states, legal moves and reasons."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class State(models.TextChoices):
    """See docs/architecture.md; terminal states are immutable, a database trigger says so too."""

    WAITING = "waiting", _("Waiting")
    QUEUED = "queued", _("Queued")
    STARTING = "starting", _("Starting")
    RUNNING = "running", _("Running")
    PAUSED = "paused", _("Paused")
    STOPPING = "stopping", _("Stopping")
    RETRY_WAIT = "retry_wait", _("Waiting to retry")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    TIMED_OUT = "timed_out", _("Timed out")
    CANCELED = "canceled", _("Canceled")
    LOST = "lost", _("Lost")
    SKIPPED = "skipped", _("Skipped")


ACTIVE = (
    State.WAITING,
    State.QUEUED,
    State.STARTING,
    State.RUNNING,
    State.PAUSED,
    State.STOPPING,
    State.RETRY_WAIT,
)
TERMINAL = (State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELED, State.LOST, State.SKIPPED)
# States in which the run holds a place on a node: slots and memory are counted over these.
PLACED = (State.STARTING, State.RUNNING, State.PAUSED, State.STOPPING)

MOVES: dict[State, tuple[State, ...]] = {
    State.WAITING: (State.QUEUED, State.CANCELED, State.SKIPPED, State.FAILED),
    State.QUEUED: (State.STARTING, State.CANCELED, State.FAILED, State.TIMED_OUT, State.SKIPPED),
    State.STARTING: (
        State.RUNNING,
        State.STOPPING,
        State.QUEUED,
        State.FAILED,
        State.TIMED_OUT,
        State.CANCELED,
        State.LOST,
        State.RETRY_WAIT,
        State.SUCCEEDED,
    ),
    State.RUNNING: (
        State.PAUSED,
        State.STOPPING,
        State.SUCCEEDED,
        State.FAILED,
        State.TIMED_OUT,
        State.CANCELED,
        State.LOST,
        State.RETRY_WAIT,
    ),
    State.PAUSED: (
        State.RUNNING,
        State.STOPPING,
        State.SUCCEEDED,
        State.FAILED,
        State.TIMED_OUT,
        State.CANCELED,
        State.LOST,
        State.RETRY_WAIT,
    ),
    State.STOPPING: (State.CANCELED, State.FAILED, State.TIMED_OUT, State.SUCCEEDED, State.LOST, State.RETRY_WAIT),
    State.RETRY_WAIT: (State.QUEUED, State.CANCELED, State.FAILED, State.TIMED_OUT),
}


class Trigger(models.TextChoices):
    """Who or what asked for a run."""

    MANUAL = "manual", _("By hand")
    API = "api", _("API")
    CLI = "cli", _("Command line")
    SCHEDULE = "schedule", _("Schedule")
    UPSTREAM = "upstream", _("Upstream job")
    BACKFILL = "backfill", _("Backfill")
    INPUTS = "inputs", _("Table of inputs")
    WEBHOOK = "webhook", _("Webhook")
    REPAIR = "repair", _("Repair")
    SYSTEM = "system", _("System")


class Level(models.IntegerChoices):
    DEBUG = 10, "DEBUG"
    INFO = 20, "INFO"
    WARNING = 30, "WARNING"
    ERROR = 40, "ERROR"
    CRITICAL = 50, "CRITICAL"
