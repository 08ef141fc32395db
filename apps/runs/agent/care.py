"""Keeps the machine in order: health of engine and disk, leftovers of runs that are over."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from django.db import transaction

from apps.engine.errors import EngineError, EngineUnavailable
from apps.engine.types import EngineHealth, Handle
from apps.runs import leases, store
from apps.runs.agent.config import MEMORY_SHARE, SLOTS_PER_CORE, AgentConfig
from apps.runs.agent.followed import Followed
from apps.runs.agent.loops import Loop
from apps.runs.agent.station import Station
from apps.runs.crash import crash_point
from apps.runs.models import Run
from apps.runs.states import TERMINAL

logger = logging.getLogger(__name__)

MOST_SKEW_SECONDS = 5.0
LEFT_AFTER_SECONDS = 60.0
STUCK_AFTER = 60.0


def report_of(
    config: AgentConfig, kind: str, isolated: bool, health: EngineHealth, trouble: str, warnings: tuple[str, ...]
) -> leases.NodeReport:
    cpus = health.cpus or 1
    return leases.NodeReport(
        name=config.node,
        worker=config.worker,
        executor=kind,
        isolated=isolated,
        slots=config.slots or max(1, round(cpus * SLOTS_PER_CORE)),
        memory_bytes=int(health.memory_bytes * MEMORY_SHARE),
        cpus=cpus,
        engine_version=health.version,
        demo_site=config.demo_site,
        trouble=trouble,
        warnings=warnings,
    )


class Caretaker:
    def __init__(self, station: Station, health: EngineHealth) -> None:
        self.station = station
        self.health = health
        self._prepared = False
        self._reconcile_at = 0.0
        self._reported: leases.NodeReport | None = None
        self._report_at = 0.0
        self.loops: Sequence[Loop] = ()

    def tick(self) -> float:
        station = self.station
        self._look_at_engine()
        self._look_at_disk()
        skew = station.skew.total_seconds()
        far_off = abs(skew) > MOST_SKEW_SECONDS
        station.set_trouble("clock", f"Its clock differs from the database's by {skew:.0f} s." if far_off else "")
        now = time.monotonic()
        stuck = ", ".join(loop.name for loop in self.loops if now - loop.last_done > STUCK_AFTER)
        station.set_trouble("stuck", f"Parts of its worker have not moved for a minute: {stuck}." if stuck else "")
        if not self._prepared and "engine" not in station.troubles:
            self._prepare()
        self.report()
        if self._prepared and time.monotonic() >= self._reconcile_at and "engine" not in station.troubles:
            self.reconcile()
            self._reconcile_at = time.monotonic() + station.config.reconcile_every
        return station.config.care_every

    def report(self) -> None:
        """Write the node's row when something has changed; now and then anyway, for a second worker writes it too."""
        station = self.station
        warnings = tuple(dict.fromkeys((*self.health.warnings, *station.warnings)))
        executor = station.executor
        report = report_of(station.config, executor.kind, executor.isolated, self.health, station.trouble, warnings)
        now = time.monotonic()
        if report != self._reported or now >= self._report_at:
            leases.report_node(station.node.pk, report)
            self._reported, self._report_at = report, now + station.config.report_every
            if not report.trouble:
                station.work.set()

    def _look_at_engine(self) -> None:
        health = self.station.executor.health()
        if health.ok:
            self.health = health
        self.station.set_trouble("engine", "" if health.ok else health.message or "The engine does not answer.")

    def _look_at_disk(self) -> None:
        runs_home = self.station.config.runs_home
        runs_home.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(runs_home).free
        low = free < self.station.config.free_disk
        self.station.set_trouble("disk", f"Only {free // 2**20} MB are free on the disk for runs." if low else "")

    def _prepare(self) -> None:
        """Before the first start: what runs share, and a probe that it holds."""
        station = self.station
        try:
            station.executor.prepare()
            faults = station.executor.probe()
        except EngineError as error:
            station.set_trouble("start", str(error))
            return
        if faults and not station.config.trust_network:
            station.set_trouble("start", " ".join(faults))
            return
        station.warnings = faults
        self._prepared = True
        station.set_trouble("start", "")

    def reconcile(self) -> None:
        """What exists on the engine but belongs to no run of ours is removed; then its files."""
        station = self.station
        try:
            handles = station.executor.list(station.config.install)
            kept = self._kept({handle.run_id for handle in handles})
            for handle in handles:
                if kept.get(handle.run_id) != handle.attempt:
                    self._remove_orphan(handle)
        except EngineError as error:
            logger.warning("reconcile: %s", error)
        self._clear_leftovers()

    def _kept(self, run_ids: set[int]) -> dict[int, int]:
        """The attempts that have a right to exist here."""
        # A run that is over and still followed is being cleared away at this moment.
        rows = Run.objects.filter(pk__in=run_ids, node=self.station.node).exclude(state__in=TERMINAL)
        kept = dict(rows.values_list("pk", "attempt"))
        return kept | {followed.run_id: followed.attempt for followed in self.station.roster}

    @transaction.atomic
    def _remove_orphan(self, handle: Handle) -> None:
        """A run that was given back may be claimed again at this moment, and find this very container by its name.

        Its row stays locked meanwhile: claimers step over it, and what was claimed before is seen here.
        """
        run = Run.objects.select_for_update(no_key=True).filter(pk=handle.run_id).exclude(state__in=TERMINAL)
        current = run.values_list("attempt", "node").first()
        if current == (handle.attempt, self.station.node.pk):
            return
        logger.info("removing %s, which belongs to no run", handle.name)
        self.station.executor.kill(handle)
        self.station.executor.remove(handle)

    def _clear_leftovers(self) -> None:
        """Folders whose run is over: a worker died between its end and the clearing."""
        for folder in self.station.config.runs_home.iterdir():
            run, _, attempt = folder.name.partition("-")
            if not (run.isdigit() and attempt.isdigit()) or time.time() - folder.stat().st_mtime < LEFT_AFTER_SECONDS:
                continue
            if self._is_left_over(int(run), int(attempt)):
                self._clear_leftover(int(run), int(attempt), folder)

    def _is_left_over(self, run_id: int, attempt: int, *, lock: bool = False) -> bool:
        runs = Run.objects.select_for_update(no_key=True) if lock else Run.objects
        current = runs.filter(pk=run_id).exclude(state__in=TERMINAL).values_list("attempt", flat=True)
        return attempt not in current and self.station.roster.get(run_id) is None

    @transaction.atomic
    def _clear_leftover(self, run_id: int, attempt: int, folder: Path) -> None:
        """Asked again under the lock that keeps claimers away: the next start of a run that was given back uses it."""
        if self._is_left_over(run_id, attempt, lock=True):
            store.merge_chunks(run_id)
            self._remove_files(run_id, attempt, folder)

    def clear_away(self, followed: Followed) -> None:
        """After the end is stored: container, files, small chunks. What fails here is left to the reconciler.

        It may exist although we have no handle: created while it was stopped, or never looked for since it was adopted.
        """
        station = self.station
        try:
            handle = followed.handle or station.executor.find(
                station.config.install, followed.run_id, followed.attempt, followed.run_dir
            )
            if handle is not None:
                station.executor.remove(handle)
            crash_point("removed")
        except EngineUnavailable as error:
            logger.info("%s is removed later: %s", followed, error)
            return
        except EngineError as error:
            logger.warning("%s could not be removed: %s", followed, error)
            return
        store.merge_chunks(followed.run_id)
        self._remove_files(followed.run_id, followed.attempt, followed.run_dir)

    def _remove_files(self, run_id: int, attempt: int, folder: Path) -> None:
        """The folder last: while it is there somebody will look again. Its container may have gone without us."""
        self.station.executor.forget(self.station.config.install, run_id, attempt)
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
