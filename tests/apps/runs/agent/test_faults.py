"""The whole agent with its threads, while what it leans on breaks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from apps.engine.errors import EngineUnavailable
from apps.engine.executors.fake import FakeExecutor
from apps.runs import services
from apps.runs.agent import config
from apps.runs.agent.agent import Agent
from apps.runs.agent.loops import Loop
from apps.runs.models import Node, Run
from apps.runs.states import TERMINAL, State
from tests.apps.runs.agent.rig import ALICE, Rig, items, lines, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class Live:
    """An agent that runs by itself, as in a worker."""

    def __init__(self, home: Path) -> None:
        self.rig = Rig(home)
        self.executor = self.rig.executor
        self.agents: list[Agent] = []
        self.start("w1")

    def start(self, worker: str) -> Agent:
        made = replace(
            self.rig.config, worker=worker, sweep=0.1, adopt_every=0.2, observe_every=0.2, heartbeat=0.5, care_every=0.3
        )
        agent = Agent(made, self.executor)
        agent.start()
        self.agents.append(agent)
        return agent

    def running(self) -> Run:
        run = self.rig.request()
        self.until(run, State.RUNNING)
        return run

    def until(self, run: Run, *states: str) -> None:
        def reached() -> bool:
            run.refresh_from_db()
            return run.state in states

        wait_for(reached)


@pytest.fixture
def live(tmp_path: Path, db: None) -> Iterator[Live]:
    made = Live(tmp_path)
    yield made
    for agent in made.agents:
        agent.leave()


def cut_sessions() -> None:
    """Every other session of the test database ends at once, in the middle of whatever it did."""
    known = connection.get_connection_params()
    admin = psycopg.connect(
        **{key: known[key] for key in ("host", "user", "port") if known.get(key)}, dbname="postgres"
    )
    with admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [connection.settings_dict["NAME"]],
        )
    connection.close()


def test_cut_database_sessions_lose_and_double_nothing(live: Live) -> None:
    run = live.running()
    attempt = live.executor.attempt(run.pk)
    for number in range(400):
        attempt.print(f"line {number}")
        attempt.emit({"n": number})
        if number % 40 == 20:
            cut_sessions()
        time.sleep(0.005)
    attempt.exit(0)
    cut_sessions()
    live.executor.ring()
    live.until(run, *TERMINAL)
    assert run.state == "succeeded"
    assert lines(run) == [f"line {number}" for number in range(400)]
    assert items(run) == [{"n": number} for number in range(400)]


def test_two_agents_of_a_node_share_its_runs_and_do_not_double_them(live: Live) -> None:
    live.start("w2")
    runs = [live.rig.request(memory_mb=32) for _ in range(8)]
    for run in runs:
        live.until(run, State.RUNNING, *TERMINAL)
        attempt = live.executor.attempt(run.pk)
        attempt.print("only once")
        attempt.exit(0)
        live.executor.ring()
    for run in runs:
        live.until(run, *TERMINAL)
        assert (run.state, run.attempt, lines(run)) == ("succeeded", 1, ["only once"])


def test_leaving_and_coming_back_is_a_matter_of_moments(live: Live) -> None:
    run = live.running()
    began = time.monotonic()
    live.agents.pop().leave()
    assert time.monotonic() - began < 5
    live.executor.attempt(run.pk).print("while nobody looked")
    live.start("w2")
    wait_for(lambda: lines(run) == ["while nobody looked"])
    run.refresh_from_db()
    assert (run.worker, run.token, run.state) == ("w2", 2, "running")


def test_a_stop_reaches_a_run_without_any_hint(live: Live) -> None:
    run = live.running()
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    live.until(run, *TERMINAL)
    assert (run.state, run.reason) == ("canceled", "stopped_by_user")


def test_an_engine_that_is_away_shows_as_trouble_and_comes_back(live: Live) -> None:
    run = live.running()
    live.executor.fail("inspect", EngineUnavailable("The engine does not answer."))
    live.executor.state = replace(live.executor.state, ok=False, message="The engine does not answer.")
    wait_for(lambda: "does not answer" in Node.objects.get().trouble)
    waiting = live.rig.request()
    assert "does not answer" in services.why_waiting(waiting, datetime.now(UTC))
    live.executor.fail("inspect", None)
    live.executor.state = replace(live.executor.state, ok=True, message="")
    live.until(waiting, State.RUNNING)
    run.refresh_from_db()
    assert run.state == State.RUNNING


def test_a_probe_that_fails_forbids_starts(tmp_path: Path) -> None:
    executor = FakeExecutor()
    executor.faults = ("Runs can reach the host.",)
    rig = Rig(tmp_path, executor)
    run = rig.request()
    rig.turn()
    run.refresh_from_db()
    assert run.state == State.QUEUED
    assert Node.objects.get().trouble == "Runs can reach the host."


def test_a_full_disk_forbids_starts(tmp_path: Path) -> None:
    rig = Rig(tmp_path, free_disk=1 << 60)
    run = rig.request()
    rig.turn()
    run.refresh_from_db()
    assert run.state == State.QUEUED
    assert "free on the disk for runs" in Node.objects.get().trouble


def test_a_worker_is_proven_dead_by_its_process() -> None:
    own = config.worker_id()
    gone = own.replace(f"-{os.getpid()}-", "-999999-")
    again = own.rpartition("-")[0] + "-1"
    elsewhere = "otherboot.1-999999-5"
    assert config.dead_workers([own, gone, again, elsewhere, "odd", ""]) == [gone, again]


def test_a_part_of_the_agent_that_does_not_move_shows_as_trouble(live: Live) -> None:
    agent = live.agents[0]
    wait_for(lambda: Node.objects.get().trouble == "")
    stuck = Loop("tail", lambda: 1.0, stop=threading.Event())
    stuck.last_done -= 61
    agent.caretaker.loops = [stuck]
    agent.caretaker.tick()
    assert "have not moved for a minute: agent-tail" in Node.objects.get().trouble
