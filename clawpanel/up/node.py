"""`deploy/node`: this machine as a node of a panel that runs elsewhere. Imports no Django: this process stays."""

from __future__ import annotations

import psycopg

from clawpanel import env
from clawpanel.up import checks, services
from clawpanel.up.foreground import Foreground, found_by, start_demo, wait_until
from clawpanel.up.supervisor import Supervisor

JOIN_SECONDS = 120


class Node(Foreground):
    who = "node"
    going = "leaving"
    gone = "left"

    def run(self) -> None:
        checks.shared_settings()
        super().run()

    def check(self) -> None:
        checks.database_answers(env.DATABASE_URL)

    def start(self, supervisor: Supervisor) -> None:
        plan = found_by(supervisor, services.joining, "This machine does not join; the line above says why.")
        demo_site = start_demo(supervisor, plan["demo_host"])
        supervisor.add(services.worker(demo_site, plan["executor"]))
        wait_until(supervisor, has_joined, JOIN_SECONDS, "The worker did not report; see the lines above.")
        supervisor.ready = True
        self.tell(f"{services.node_name()} has joined. {plan['why']} Ctrl-C leaves; crawls go on.")


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
