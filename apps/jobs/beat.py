"""Celery's beat with the clock of schedules in it.

Ordinary periodic tasks are sent by django-celery-beat as ever. Schedules of jobs are fired by a thread of its own,
from the database: any number of beats may run, and a broker that is gone keeps none of them from making runs.
"""

from __future__ import annotations

import logging
import queue
import threading
from datetime import UTC, datetime
from typing import Any

from django.db import Error as DatabaseTrouble
from django.db import connection
from django.db.models import QuerySet
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from apps.jobs.models import FIRE_TASK
from apps.jobs.services.firing import Keeper, look
from apps.jobs.services.firing.transactions import Hook, run_hooks

logger = logging.getLogger(__name__)

# After a look that failed: the database may be on its way down, or up.
TROUBLE_SECONDS = 0.5
LONGEST_TROUBLE_SECONDS = 5.0
STOP_SECONDS = 5.0
# What cannot be said to the broker in time is left to the sweeps.
_MOST_HOOKS = 10_000


class Herald:
    """Says what follows a commit to broker and pages, which may take seconds to find out that nobody listens."""

    def __init__(self) -> None:
        self._queue: queue.Queue[list[Hook] | None] = queue.Queue(_MOST_HOOKS)
        self._thread = threading.Thread(target=self._run, name="herald", daemon=True)
        self._thread.start()

    def tell(self, hooks: list[Hook]) -> None:
        try:
            self._queue.put_nowait(hooks)
        except queue.Full:
            logger.warning("hints about due times are dropped, the broker does not keep up")

    def stop(self) -> None:
        """Whatever has not been said by now is left to the sweeps."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(STOP_SECONDS / 2)

    def _run(self) -> None:
        while (hooks := self._queue.get()) is not None:
            run_hooks(hooks)
            if self._queue.empty():
                # It may be the last for hours; a connection that breaks meanwhile would cost the next one.
                connection.close()
        connection.close()


class ClockThread(threading.Thread):
    """Looks at the clock until it is stopped, whatever becomes of the database meanwhile."""

    def __init__(self) -> None:
        super().__init__(name="clock", daemon=True)
        self._over = threading.Event()
        self._herald = Herald()
        self._keeper = Keeper(after_commit=self._herald.tell, goes_on=lambda: not self._over.is_set())

    def run(self) -> None:
        trouble = 0.0
        while not self._over.is_set():
            try:
                seconds = look(keeper=self._keeper).seconds
            except Exception as error:
                if not trouble:
                    logger.warning("due times cannot be looked for, trying on: %s", error, exc_info=not _is_loss(error))
                connection.close()
                seconds = trouble = min(max(2 * trouble, TROUBLE_SECONDS), LONGEST_TROUBLE_SECONDS)
            else:
                if trouble:
                    logger.warning("due times are looked for again")
                trouble = 0.0
            self._over.wait(seconds)
        connection.close()

    def stop(self) -> None:
        self._over.set()
        self._herald.stop()
        if self.is_alive():
            self.join(STOP_SECONDS)


def _is_loss(error: Exception) -> bool:
    return isinstance(error, DatabaseTrouble)


class ClawScheduler(DatabaseScheduler):
    """Sends ordinary periodic tasks; schedules of jobs are fired by the clock beside it."""

    _clock: ClockThread | None = None
    _closed = False

    def enabled_models_qs(self) -> QuerySet[PeriodicTask]:
        # All of them: the base leaves out tasks of other hours, with a query that grows with the number of crontabs.
        rows = PeriodicTask.objects.filter(enabled=True).exclude(task=FIRE_TASK)
        return rows.select_related("interval", "crontab", "solar", "clocked")

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """The base ends beat when the database is away at the wrong moment."""
        self._keep_clock()
        try:
            seconds: float = super().tick(*args, **kwargs)
        except DatabaseTrouble as error:
            logger.warning("periodic tasks cannot be read, trying on: %s", error)
            connection.close()
            # Whatever has changed is read again.
            self._last_timestamp = datetime(1970, 1, 1, tzinfo=UTC)
            seconds = TROUBLE_SECONDS
        return seconds

    def _keep_clock(self) -> None:
        """Not before the first tick: Celery also makes schedulers that it only asks for their name."""
        if self._closed or (self._clock is not None and self._clock.is_alive()):
            return
        if self._clock is not None:
            logger.error("the clock of schedules had ended and is started again")
            self._clock.stop()
        self._clock = ClockThread()
        self._clock.start()

    def close(self) -> None:
        """Called twice at a SIGTERM."""
        self._closed = True
        if self._clock is not None:
            self._clock.stop()
        super().close()
