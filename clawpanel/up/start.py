"""The whole panel on one machine, from nothing to a working address. Imports no Django: this process stays."""

from __future__ import annotations

import http.client
from typing import Any
from urllib.parse import quote

import psycopg

from clawpanel import env
from clawpanel.refusal import CannotStart
from clawpanel.up import checks, places, services
from clawpanel.up.foreground import Foreground, found_by, start_demo, wait_until
from clawpanel.up.servers import EmbeddedPostgres, EmbeddedValkey
from clawpanel.up.supervisor import Server, Supervisor

READY_SECONDS = 120
SAMPLE_SECONDS = 180
WILDCARDS = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 (where to look, not to listen)


class Panel(Foreground):
    who = "up"
    going = "stopping"
    gone = "stopped"

    def check(self) -> None:
        checks.port_is_free(env.BIND, env.PORT, "CLAWPANEL_PORT")

    def start(self, supervisor: Supervisor) -> None:
        self.start_servers(supervisor)
        plan = found_by(supervisor, services.preparation, "The panel could not be prepared; see the lines above.")
        self.start_services(supervisor, plan)
        if plan["sample_run"]:
            self.wait_for_sample(supervisor, plan["sample_run"])
        self.greet(plan)

    def start_servers(self, supervisor: Supervisor) -> None:
        servers: list[Server] = []
        if env.DATABASE_URL:
            checks.database_answers(env.DATABASE_URL)
        else:
            servers.append(EmbeddedPostgres(env.HOME))
        if not env.REDIS_URL:
            servers.append(EmbeddedValkey(env.HOME))
        for server in servers:
            supervisor.add_server(server)
            self.tell(f"{server.name} is running")

    def start_services(self, supervisor: Supervisor, plan: dict[str, Any]) -> None:
        demo_site = start_demo(supervisor, plan["demo_host"])
        supervisor.add(services.web())
        supervisor.add(services.worker(demo_site, plan["executor"]))
        supervisor.add(services.beat(env.HOME))
        wait_until(supervisor, is_ready, READY_SECONDS, "The panel did not get ready; see the lines above.")
        supervisor.ready = True

    def wait_for_sample(self, supervisor: Supervisor, run_id: int) -> None:
        self.tell(f"running the sample job once (run {run_id})")
        try:
            wait_until(supervisor, lambda: bool(sample_state(run_id)), SAMPLE_SECONDS, "")
        except CannotStart:
            self.tell("the sample run takes longer than usual; it goes on")
        else:
            self.tell(f"the sample run {sample_state(run_id)}")

    def greet(self, plan: dict[str, Any]) -> None:
        lines = ["", "ClawPanel is ready.", "", f"  Address   {address()}", f"  User      {plan['user']}"]
        if plan["password"]:
            lines.append(f"  Password  {plan['password']}   (shown only now: keep it)")
        elif env.ADMIN_PASSWORD:
            lines.append("  Password  as CLAWPANEL_ADMIN_PASSWORD said at the first start")
        else:
            lines.append("  Password  as shown at the first start (manage.py changepassword sets a new one)")
        lines += [f"  Executor  {plan['executor']}: {plan['why']}", "", "Ctrl-C stops the panel; crawls go on.", ""]
        for line in lines:
            self.tell(line)


def address() -> str:
    host = WILDCARDS.get(env.BIND, env.BIND)
    return env.PUBLIC_URL or f"http://{f'[{host}]' if ':' in host else quote(host)}:{env.PORT}/"


def is_ready() -> bool:
    """Whether GET /readyz says 200."""
    client = http.client.HTTPConnection(WILDCARDS.get(env.BIND, env.BIND), env.PORT, timeout=5)
    try:
        client.request("GET", "/readyz", headers={"Host": f"localhost:{env.PORT}"})
        return client.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def sample_state(run_id: int) -> str:
    """How the run ended; empty while it has not."""
    url = env.DATABASE_URL or places.postgres_url(env.HOME)
    try:
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT state FROM runs_run WHERE id = %s AND finished_at IS NOT NULL", (run_id,)
            ).fetchone()
    except psycopg.Error:
        return ""
    return str(row[0]) if row else ""
