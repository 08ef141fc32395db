"""Each way for a container to end, with its promised outcome, all of them side by side in real containers."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field

import pytest
from django.conf import settings

from apps.runs.models import Run
from tests.chaos.waiting import is_over
from tests.journeys.worker import bench

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.docker,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]

HOG = "hold = []\nwhile True:\n    hold.append(bytearray(16 * 2**20))\n"
CHILD_HOG = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {HOG!r}])\nprint('went on')\n"
SIGNAL_ITSELF = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\nos.kill(os.getpid(), {number})\n"


@dataclass(frozen=True)
class Way:
    script: str
    state: str
    reason: str
    code: int | None
    memory_warning: bool = False
    more: dict[str, object] = field(default_factory=dict)


WAYS = {
    "exit 0": Way("", "succeeded", "", 0),
    "exit 1": Way("raise SystemExit(1)", "failed", "exit_nonzero", 1),
    "exit 3": Way("raise SystemExit(3)", "failed", "exit_nonzero", 3),
    "exit 3 that the spider calls a success": Way(
        "raise SystemExit(3)",
        "succeeded",
        "exit_meaning",
        3,
        more={"exit_codes": {"3": {"success": True, "meaning": {"en": "Nothing new", "zh-hans": "没有新内容"}}}},
    ),
    "137 by kill": Way("import time\ntime.sleep(600)", "failed", "killed", 137),
    "137 for lack of memory": Way(HOG, "failed", "oom", 137),
    "a child lacked memory, exit 0": Way(CHILD_HOG, "succeeded", "", 0, memory_warning=True),
    "143": Way(SIGNAL_ITSELF.format(number=15), "failed", "exit_nonzero", 143),
    "139": Way(SIGNAL_ITSELF.format(number=11), "failed", "exit_nonzero", 139),
}


def kill_from_outside(run: Run) -> None:
    name = f"claw-{settings.CLAWPANEL_INSTALL}-r{run.pk}-a1"
    subprocess.run(["docker", "kill", "--signal", "KILL", name], check=True, capture_output=True)


def test_every_end_has_its_promised_outcome() -> None:
    with bench("docker") as panel:
        panel.start_worker()
        runs = {name: panel.request(way.script, cpus=0.2, **way.more) for name, way in WAYS.items()}
        panel.wait(runs["137 by kill"], lambda run: run.state == "running", seconds=120)
        time.sleep(1)  # so that the program, not only its container, is there
        kill_from_outside(runs["137 by kill"])
        seen = {}
        for name, run in runs.items():
            panel.wait(run, is_over, seconds=120)
            seen[name] = (run.state, run.reason, run.exit_code, run.memory_warning)
        assert seen == {name: (way.state, way.reason, way.code, way.memory_warning) for name, way in WAYS.items()}
