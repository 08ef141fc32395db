"""An agent without threads: a test moves it on step by step, over the fake executor and the real database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apps.core.actors import Actor
from apps.engine.executors.fake import FakeAttempt, FakeExecutor
from apps.runs import services, store
from apps.runs.agent.agent import Agent
from apps.runs.agent.config import AgentConfig
from apps.runs.models import Item, LogChunk, Run
from apps.runs.policies import RetryPolicy
from apps.runs.states import Trigger
from tests.factories import SpiderFactory

ALICE = Actor("user", "alice")


class AtOnce(Pool):
    """A pool whose work is done when `submit` returns; with `hold` it waits until a test lets it go."""

    def __init__(self) -> None:
        self.hold = False
        self.waiting: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.hold:
            self.waiting.append(lambda: fn(*args, **kwargs))
        else:
            future.set_result(fn(*args, **kwargs))
        return future

    def let_go(self) -> None:
        self.hold = False
        while self.waiting:
            self.waiting.pop(0)()


class Rig:
    """One node. `second()` is another worker of the same node."""

    def __init__(self, home: Path, executor: FakeExecutor | None = None, worker: str = "w1", **config: Any) -> None:
        self.home = home
        self.executor = executor or FakeExecutor()
        config = {"observe_every": 0.0, "node": "node-a", **config}  # each step looks at all runs
        self.config = AgentConfig(home=home, install="test", worker=worker, **config)
        self.agent = Agent(self.config, self.executor)
        self.pool = AtOnce()
        self.agent.pool = self.agent.dispatcher.pool = self.pool  # type: ignore[assignment]
        self.agent.clearing = AtOnce()  # type: ignore[assignment]
        self.station = self.agent.station
        self.agent.caretaker.tick()

    def second(self, worker: str = "w2") -> Rig:
        return Rig(self.home, self.executor, worker)

    def order(self, **given: Any) -> services.RunOrder:
        spider = SpiderFactory()
        version = spider.current_version
        assert version is not None
        (self.home / "code" / version.code_id).mkdir(parents=True, exist_ok=True)
        known: dict[str, Any] = {"version": version, "trigger": Trigger.MANUAL, "project": spider.project}
        known["retry"] = RetryPolicy(infrastructure=0)  # one attempt has one end
        return services.RunOrder(**{**known, **given})

    def request(self, **given: Any) -> Run:
        return services.request_run(order=self.order(**given), by=ALICE, now=datetime.now(UTC))[0]

    def running(self, **given: Any) -> tuple[Run, FakeAttempt]:
        run = self.request(**given)
        self.agent.dispatcher.tick()
        run.refresh_from_db()
        return run, self.executor.attempt(run.pk)

    def tail(self, times: int = 1) -> None:
        for _ in range(times):
            self.agent.tail.tick()

    def finish(self) -> None:
        """Look at the engine and store what there is until nothing is left to do."""
        self.agent.observer.tick()
        for _ in range(1000):
            if self.agent.tail.tick() > 0:
                break

    def turn(self) -> None:
        self.agent.dispatcher.tick()
        self.finish()


def orphan(run: Run) -> None:
    """Its worker has not been heard of for longer than a lease."""
    Run.objects.filter(pk=run.pk).update(lease_until=datetime.now(UTC) - timedelta(seconds=1))


def ended(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.reason


def lines(run: Run) -> list[str]:
    chunks = LogChunk.objects.filter(run_id=run.pk).order_by("first_line")
    rows = [row for chunk in chunks for row in store.unpack_rows(chunk.content)]
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    return [row[3] for row in rows]


def items(run: Run) -> list[Mapping[str, Any]]:
    rows = list(Item.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", "data"))
    assert [seq for seq, _data in rows] == list(range(1, len(rows) + 1))
    return [data for _seq, data in rows]


def wait_for(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
