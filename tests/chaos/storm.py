"""Load and faults at random for a while, then calm; what is left is evidence."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos import evidence, faults
from tests.chaos.evidence import Evidence, Window
from tests.chaos.ledger import Ledger
from tests.chaos.load import Load, register, schedule
from tests.chaos.stage import Stage
from tests.panel import Panel, panel

CLOCK = Path(__file__).parent / "clock"
SLOTS = 8
RUNS_A_MINUTE = 16
ENDS_WITHIN = 240.0
# A folder is cleared by the reconciler, every 30 s, once it has not been touched for 60 s.
CLEARED_WITHIN = 120.0
DISK_MB = 720
CAUGHT_UP_WITHIN = 60.0
TWO_AT_ONCE = 0.2
MOST_RUNS = 600


@dataclass
class Storm:
    seed: int
    seconds: float
    evidence: Evidence = field(default_factory=Evidence)
    struck: Counter[str] = field(default_factory=Counter)
    takeovers: list[tuple[str, float]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    log: str = ""

    def report(self) -> str:
        runs = Counter(run.state for run in self.evidence.runs.values())
        lines = [f"seed {self.seed}, {self.seconds:g} s: {sum(runs.values())} runs, {dict(runs)}"]
        lines.append(f"{len(self.evidence.lines)} lines, {len(self.evidence.items)} items")
        lines.append("faults: " + ", ".join(f"{count} {name}" for name, count in sorted(self.struck.items())))
        lines.append("taken over after: " + ", ".join(f"{name} {took:.1f} s" for name, took in self.takeovers))
        return "\n".join(lines)


def rage(seed: int, seconds: float) -> Storm:
    """A panel of its own, torn at for that long, left alone until all is over."""
    storm = Storm(seed, seconds)
    chance = random.Random(seed)  # noqa: S311 (to be repeated)
    with tempfile.TemporaryDirectory(prefix="claw-chaos-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        clock = folder / "clock"
        more = {"PYTHONPATH": str(CLOCK), "CLAW_CHAOS_CLOCK": str(clock)}
        with (
            panel("docker", slots=SLOTS, CLAWPANEL_POISON_DEATHS="0", **more) as started,
            own_disk(started) as with_disk,
            Ledger((started.home / "keys" / "install").read_text().strip()) as ledger,
        ):
            stage = Stage(started, ledger, random.Random(chance.random()), clock, longest=min(60, seconds / 20))  # noqa: S311
            jobs = register(started, folder / "registry")
            runs = min(MOST_RUNS, 12 + int(RUNS_A_MINUTE * seconds / 60))
            load = Load(started, jobs, random.Random(chance.random()), runs, seconds)  # noqa: S311
            # How long a panel takes to come up is measured elsewhere.
            stage.windows.append(Window(datetime.min.replace(tzinfo=UTC), datetime.now(UTC), "before the storm"))
            schedules = schedule(started, jobs["quick"])
            since = stage.now()
            load.start()
            _strike(stage, storm, seconds, faults.ALWAYS + (faults.WITH_OWN_DISK if with_disk else ()))
            load.join(ENDS_WITHIN)
            until = _end_schedules(stage, schedules)
            _wait_for_the_end(stage)
            storm.evidence = _evidence(stage, load)
            storm.evidence.since, storm.evidence.until = since, until
            storm.refused = load.refused
            storm.takeovers = _takeovers(stage, storm.evidence)
            storm.log = (started.home / "up.log").read_text(errors="replace")
    return storm


@contextlib.contextmanager
def own_disk(started: Panel) -> Iterator[bool]:
    """A small file system for the runs' output, where this process may mount one."""
    runs = started.home / "runs"
    _wait(lambda: not any(runs.iterdir()), CLEARED_WITHIN)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "tmpfs", str(runs)]
    mounted = os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(runs)], check=False)


def _strike(stage: Stage, storm: Storm, seconds: float, known: tuple[faults.Fault, ...]) -> None:
    """One after the other until the time is up, each before any comes again; now and then two at once."""
    bag: list[faults.Fault] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stage.pause(0.5, 3)
        if len(bag) < 2:
            bag = stage.chance.sample(known, len(known)) + bag
        struck = [bag.pop() for _ in range(2 if stage.chance.random() < TWO_AT_ONCE else 1)]
        names = " and ".join(fault.__name__ for fault in struck)
        print(f"{datetime.now():%H:%M:%S} {names}", flush=True)  # noqa: DTZ005 (for the eye)
        storm.struck.update(fault.__name__ for fault in struck)
        with stage.fault(names):
            _all_at_once(stage, struck)


def _all_at_once(stage: Stage, struck: list[faults.Fault]) -> None:
    failed: list[BaseException] = []

    def strike(fault: faults.Fault) -> None:
        try:
            fault(stage)
        except BaseException as error:  # noqa: BLE001 (raised again below, in the thread of the test)
            failed.append(error)

    threads = [threading.Thread(target=strike, args=(fault,)) for fault in struck]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def _wait(done: Callable[[], bool], seconds: float) -> None:
    """Whether it was in vain is for the checkers to say."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.5)


def _end_schedules(stage: Stage, schedules: list[int]) -> datetime:
    """The clock catches up, then no more is due. Returns the time until which all must have been decided."""
    begin = stage.now()

    def caught_up() -> bool:
        with stage.database() as connection:
            row = connection.execute("SELECT min(next_slot_at) > %s FROM jobs_schedule", [begin]).fetchone()
        return row is not None and bool(row[0])

    _wait(caught_up, CAUGHT_UP_WITHIN)
    for pk in schedules:
        stage.panel.post(f"schedules/{pk}/pause/", {"reason": "The storm is over."})
    return begin


def _wait_for_the_end(stage: Stage) -> None:
    def over() -> bool:
        with stage.database() as connection:
            row = connection.execute("SELECT count(*) FROM runs_run WHERE finished_at IS NULL").fetchone()
        return row is not None and row[0] == 0

    _wait(over, ENDS_WITHIN)
    _wait(lambda: not _leftovers(stage), CLEARED_WITHIN)


def _leftovers(stage: Stage) -> list[str]:
    secrets = Path("/dev/shm") / f"claw-{stage.ledger.install}"
    folders = [*(stage.panel.home / "runs").iterdir(), *(secrets.iterdir() if secrets.is_dir() else ())]
    return [str(path) for path in folders] + [str(one.name) for one in stage.ledger.containers(probes=True)]


def _evidence(stage: Stage, load: Load) -> Evidence:
    found = evidence.collect(stage.panel.environment["DATABASE_URL"])
    found.containers = list(stage.ledger.entries)
    found.windows = stage.windows
    full = [window for window in stage.windows if faults.disk_for_runs_full.__name__ in window.fault]
    found.hurt = stage.hurt | {
        row.run
        for row in found.attempts
        for window in full
        if row.claimed_at <= window.end and (row.finished_at or window.end) >= window.start
    }
    found.promised = load.promised
    found.leftovers = _leftovers(stage)
    return found


def _takeovers(stage: Stage, found: Evidence) -> list[tuple[str, float]]:
    """Seconds from the death of a worker to the first run that another had taken over."""
    taken = []
    for name, at in stage.killed_at:
        after = [event.at for event in found.events if event.kind == "adopted" and event.at > at]
        again = [other for what, other in stage.killed_at if what.startswith("worker") and other > at]
        if name.startswith("worker") and after and not (again and min(again) < min(after)):
            taken.append((name, (min(after) - at).total_seconds()))
    return taken
