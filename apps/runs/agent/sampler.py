"""CPU and memory of every run, every few seconds."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from apps.engine.errors import EngineError
from apps.engine.types import Sample
from apps.runs.agent.followed import Followed
from apps.runs.agent.station import NOTHING_TO_FOLLOW, Station
from apps.runs.ingest import SampleRow, store_samples

logger = logging.getLogger(__name__)

LOOK_EVERY = 1.0


class Sampler:
    """Every look of a run's first seconds is a sample, so that short runs have a picture and a true peak too."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self._last: dict[tuple[int, int], tuple[float, float]] = {}
        self._first_seen: dict[tuple[int, int], float] = {}
        self._next_at = 0.0

    def tick(self) -> float:
        now = time.monotonic()
        regular = now >= self._next_at
        if regular:
            self._next_at = now + self.station.config.sample_every
        runs = [followed for followed in self.station.roster if followed.handle is not None and not followed.is_over]
        due = [followed for followed in runs if regular or self._is_young(followed, now)]
        rows = [row for row in map(self._row, due) if row is not None]
        store_samples(rows, now=self.station.now())
        alive = {self._key(followed) for followed in runs}
        self._last = {key: value for key, value in self._last.items() if key in alive}
        self._first_seen = {key: at for key, at in self._first_seen.items() if key in alive}
        return LOOK_EVERY if len(self.station.roster) else NOTHING_TO_FOLLOW

    def _is_young(self, followed: Followed, now: float) -> bool:
        return now - self._first_seen.setdefault(self._key(followed), now) < self.station.config.sample_every

    @staticmethod
    def _key(followed: Followed) -> tuple[int, int]:
        return followed.run_id, followed.token

    def _row(self, followed: Followed) -> SampleRow | None:
        handle = followed.handle
        if handle is None:
            return None
        try:
            sample = self.station.executor.sample(handle)
        except EngineError as error:
            logger.debug("no sample of %r: %s", followed, error)
            return None
        if sample is None:
            return None
        return SampleRow(
            run_id=followed.run_id,
            token=followed.token,
            attempt=followed.attempt,
            cpu_percent=self._rate(self._key(followed), sample),
            memory_bytes=sample.memory_bytes,
            memory_limit_bytes=sample.memory_limit_bytes,
            pids=sample.pids,
        )

    def _rate(self, key: tuple[int, int], sample: Sample) -> float:
        now = time.monotonic()
        before: Mapping[tuple[int, int], tuple[float, float]] = self._last
        at, used = before.get(key, (now, sample.cpu_seconds))
        self._last[key] = (now, sample.cpu_seconds)
        return round(100 * max(0.0, sample.cpu_seconds - used) / (now - at), 1) if now > at else 0.0
