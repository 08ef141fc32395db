"""Short and long runs that write numbered lines and items, asked for through the API whatever happens to it."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.panel import Panel

SPIDER = Path(__file__).parent / "spider"
SCHEMA = {
    "type": "object",
    "required": ["count", "per_second", "items_every", "code", "fail_attempts"],
    "properties": {
        name: {"type": "number" if name == "per_second" else "integer", "minimum": 0}
        for name in ("count", "per_second", "items_every", "code", "fail_attempts")
    },
}
ASK_AGAIN_SECONDS = 0.5
POOL = "shop.example"
POOL_LIMIT = 2
# Of the quick job, each of them; what was due while every clock lay still is made up for.
EVERY_SECONDS = (7, 11)
MISFIRE = {"policy": "all", "cap": 1000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A job of the load; `more` are columns of the job that no form is needed for."""

    name: str
    count: int
    per_second: float
    items_every: int = 2
    code: int = 0
    fail_attempts: int = 0
    priority: int = 5
    pooled: bool = False
    more: dict[str, Any]

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SCHEMA["required"]}


SIDE_BY_SIDE = {"overlap": "allow"}
TWICE_MORE = {**SIDE_BY_SIDE, "retry": {"attempts": 3, "backoff": "fixed", "delay_seconds": 1, "jitter": 0.0}}
KINDS = (
    Kind(name="quick", count=20, per_second=0, priority=3, more=SIDE_BY_SIDE),
    Kind(name="long", count=600, per_second=30, items_every=3, priority=7, more=SIDE_BY_SIDE),
    Kind(name="chatty", count=20_000, per_second=2_000, items_every=10, more=SIDE_BY_SIDE),
    Kind(name="items", count=300, per_second=30, items_every=1, more=SIDE_BY_SIDE),
    Kind(name="failing", count=30, per_second=10, code=3, priority=9, more=SIDE_BY_SIDE),
    Kind(name="flaky", count=30, per_second=10, code=3, fail_attempts=2, more=TWICE_MORE),
    Kind(name="pooled", count=60, per_second=10, pooled=True, priority=1, more=SIDE_BY_SIDE),
    Kind(name="two", count=60, per_second=10, more={"overlap": "allow", "overlap_max": 2}),
    Kind(name="one", count=40, per_second=10, more={"overlap": "queue"}),
    Kind(name="skip", count=40, per_second=10, more={"overlap": "skip"}),
)


def register(panel: Panel, folder: Path) -> dict[str, int]:
    """The spider and its jobs; returns the jobs' ids by name."""
    shutil.copytree(SPIDER, folder / "counter", ignore=shutil.ignore_patterns("__pycache__"))
    spider = {"name": "counter", "path": "counter", "kind": "command", "entry": ["python3", "main.py"]}
    spider |= {"version": "1", "author": "chaos", "title": {"en": "Counter"}, "description": {"en": "Counts."}}
    spider |= {"parameter_schema": SCHEMA, "limits": {"memory_mb": 64, "cpus": 0.2, "timeout_seconds": 600}}
    registry = {"project": {"slug": "chaos", "name": {"en": "Chaos"}}, "spiders": [spider]}
    (folder / "spider_registry.json").write_text(json.dumps(registry))
    panel.manage("sync_spiders", str(folder))
    jobs = {}
    for kind in KINDS:
        body = {"name": kind.name, "spider": "counter", "parameters": kind.parameters, "priority": kind.priority}
        jobs[kind.name] = int(panel.post("jobs/", body)["id"])
    lines = ["from apps.jobs.models import Job", "from apps.runs.models import Pool"]
    lines.append(f"pool = Pool.objects.create(name={POOL!r}, limit={POOL_LIMIT})")
    lines += [f"Job.objects.filter(pk={jobs[kind.name]}).update(**{kind.more!r})" for kind in KINDS]
    lines += [f"Job.objects.get(pk={jobs[kind.name]}).pools.add(pool)" for kind in KINDS if kind.pooled]
    panel.manage("shell", "-c", "\n".join(lines))
    return jobs


def schedule(panel: Panel, job: int) -> list[int]:
    """Schedules of the job; returns their ids."""
    body = {"job": job, "type": "interval", "misfire": MISFIRE}
    return [int(panel.post("schedules/", body | {"every": every})["id"]) for every in EVERY_SECONDS]


class Load(threading.Thread):
    """Asks for `runs` runs over `seconds`, stops some of them, and remembers what was promised."""

    def __init__(self, panel: Panel, jobs: dict[str, int], chance: random.Random, runs: int, seconds: float) -> None:
        super().__init__(name="load", daemon=True)
        self.panel, self.jobs, self.chance = panel, jobs, chance
        names = [*jobs, *chance.choices(list(jobs), k=max(0, runs - len(jobs)))]
        chance.shuffle(names)
        # A third comes at once, so that there is a queue from the beginning.
        self.plan = sorted((0.0 if n % 3 == 0 else chance.uniform(0, seconds), name) for n, name in enumerate(names))
        self.promised: set[int] = set()
        self.refused: list[str] = []
        self._headers = dict(panel.session.headers)

    def run(self) -> None:
        begin = time.monotonic()
        for at, name in self.plan:
            time.sleep(max(0.0, begin + at - time.monotonic()))
            run = self.ask(name)
            if run and self.chance.random() < 0.2:
                word = self.chance.choice(("stop", "stop", "pause"))
                threading.Timer(self.chance.uniform(0, 8), self.tell, (run, word)).start()

    def ask(self, name: str) -> int | None:
        """Until there is an answer: the key makes it one run, however often it is sent."""
        headers = {"Idempotency-Key": uuid.UUID(int=self.chance.getrandbits(128)).hex}
        answer = self._post(f"jobs/{self.jobs[name]}/run/", headers)
        if answer is None or not answer.ok:
            self.refused.append(f"{name}: {answer.text[:300] if answer is not None else 'no answer'}")
            return None
        run = int(answer.json()["id"])
        self.promised.add(run)
        return run

    def tell(self, run: int, word: str) -> None:
        answer = self._post(f"runs/{run}/{word}/", {})
        if word == "pause" and answer is not None and answer.ok:
            time.sleep(self.chance.uniform(0, 4))
            self._post(f"runs/{run}/resume/", {})

    def _post(self, path: str, headers: dict[str, str], seconds: float = 180) -> requests.Response | None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                url = f"{self.panel.url}/api/v1/{path}"
                answer = requests.post(url, json={}, headers=self._headers | headers, timeout=20)
            except requests.RequestException:
                time.sleep(ASK_AGAIN_SECONDS)
                continue
            if answer.status_code < 500 and answer.status_code != 429:
                return answer
            time.sleep(ASK_AGAIN_SECONDS)
        return None
