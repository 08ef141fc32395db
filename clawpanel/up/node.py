"""`deploy/node`: this machine as a node of a panel that runs elsewhere. Imports no Django: this process stays."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

import psycopg

from clawpanel import env
from clawpanel.refusal import CannotStart
from clawpanel.up import checks, processes, services
from clawpanel.up.start import Say, StopAsked, start_demo, wait_until
from clawpanel.up.supervisor import Supervisor

JOIN_SECONDS = 120


@dataclass
class Node:
    """`say(who, text)` shows a line."""

    say: Say

    def run(self) -> None:
        """Until somebody asks for an end."""
        checks.shared_settings()
        checks.writable(env.HOME)
        with checks.only_one(env.HOME):
            for name in processes.stop_leftovers(env.HOME):
                self.tell(f"stopped {name}, left behind by an earlier start")
            checks.database_answers(env.DATABASE_URL)
            supervisor = Supervisor(home=env.HOME, say=self.say)
            with supervisor.signals():
                try:
                    with contextlib.suppress(StopAsked):
                        self.start(supervisor)
                        supervisor.run_until_stopped()
                finally:
                    self.tell("leaving")
                    supervisor.stop()
                    self.tell("left; crawls in containers go on and are picked up at the next start")

    def tell(self, text: str) -> None:
        self.say("node", text)

    def start(self, supervisor: Supervisor) -> None:
        plan = self.prepare(supervisor)
        demo_site = start_demo(supervisor, plan["demo_host"])
        supervisor.add(services.worker(demo_site, plan["executor"]))
        wait_until(supervisor, has_joined, JOIN_SECONDS, "The worker did not report; see the lines above.")
        supervisor.ready = True
        self.tell(f"{services.node_name()} has joined. {plan['why']} Ctrl-C leaves; crawls go on.")

    def prepare(self, supervisor: Supervisor) -> dict[str, Any]:
        """What needs Django, in a process that ends."""
        result = env.HOME / "node.json"
        result.unlink(missing_ok=True)
        code = supervisor.run_once(services.joining(result))
        if supervisor.stopping:
            raise StopAsked
        if code:
            raise CannotStart("This machine does not join; the line above says why.")
        plan: dict[str, Any] = json.loads(result.read_text())
        result.unlink()
        return plan


def has_joined() -> bool:
    """Whether the worker has found nothing that keeps it from starting runs, or has said what does."""
    try:
        with psycopg.connect(env.DATABASE_URL, connect_timeout=5) as connection:
            row = connection.execute(
                "SELECT trouble FROM runs_node WHERE name = %s AND heartbeat_at > now() - interval '10 seconds'",
                (services.node_name(),),
            ).fetchone()
    except psycopg.Error:
        return False
    return row is not None and row[0] != "It is starting up."
