"""The whole panel on one machine, from nothing to a working address."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from django.db import connections
from django.utils import timezone

from apps.runs.models import Run
from apps.runs.states import TERMINAL
from clawpanel import env
from clawpanel.refusal import CannotStart
from clawpanel.up import checks, engine, first_start, processes, services
from clawpanel.up.servers import EmbeddedPostgres, EmbeddedValkey
from clawpanel.up.supervisor import Server, Supervisor

READY_SECONDS = 120
SAMPLE_SECONDS = 180
WILDCARDS = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 (where to look, not to listen)

Say = Callable[[str, str], None]


@dataclass
class Panel:
    """`say(who, text)` shows a line."""

    say: Say
    servers: list[Server] = field(default_factory=list)
    generated_password: str = ""

    def run(self) -> int:
        """Until somebody asks for an end. The exit code."""
        checks.writable(env.HOME)
        with checks.only_one(env.HOME):
            for name in processes.stop_leftovers(env.HOME):
                self.tell(f"stopped {name}, left behind by an earlier start")
            checks.port_is_free(env.BIND, env.PORT, "CLAWPANEL_PORT")
            try:
                self.start_servers()
                return self.serve()
            finally:
                connections.close_all()
                for server in reversed(self.servers):
                    server.stop()

    def tell(self, text: str) -> None:
        self.say("up", text)

    def start_servers(self) -> None:
        if env.DATABASE_URL:
            checks.database_answers(env.DATABASE_URL)
        else:
            self.servers.append(EmbeddedPostgres(env.HOME))
        if env.REDIS_URL:
            checks.broker_answers(env.REDIS_URL)
        else:
            self.servers.append(EmbeddedValkey(env.HOME))
        for server in self.servers:
            server.start()
            self.tell(f"{server.name} is running")

    def prepare(self) -> engine.Choice:
        first_start.migrate(self.tell)
        self.generated_password = first_start.administrator(name=env.ADMIN_USER, password=env.ADMIN_PASSWORD)
        first_start.register_spiders(folder=env.SPIDER_REPO, now=timezone.now(), say=self.tell)
        choice = engine.choose(self.tell)
        self.tell(f"runs use the {choice.kind} executor: {choice.why}")
        return choice

    def serve(self) -> int:
        supervisor = Supervisor(home=env.HOME, servers=self.servers, say=self.say)
        with supervisor.signals():
            try:
                choice = self.prepare()
                with contextlib.suppress(StopAsked):
                    self.start_services(supervisor, choice)
                    sample = first_start.make_sample_run(admin_name=env.ADMIN_USER, now=timezone.now())
                    if sample is not None:
                        self.wait_for_sample(supervisor, sample)
                    self.greet(choice)
                connections.close_all()
                supervisor.run_until_stopped()
            finally:
                self.tell("stopping")
                supervisor.stop()
        self.tell("stopped; crawls in containers go on and are picked up at the next start")
        return 0

    def start_services(self, supervisor: Supervisor, choice: engine.Choice) -> None:
        demo_site = ""
        if services.DEMO_SERVER.is_file() and not env.DEMO_SITE:
            address = f"{choice.demo_host}:{env.DEMO_PORT}"
            checks.port_is_free(choice.demo_host, env.DEMO_PORT, "CLAWPANEL_DEMO_PORT")
            supervisor.add(services.demo(address))
            demo_site = f"http://{address}/"
        supervisor.add(services.web())
        supervisor.add(services.worker(demo_site))
        supervisor.add(services.beat(env.HOME))
        self.wait_until(supervisor, is_ready, READY_SECONDS, "The panel did not get ready; see the lines above.")
        supervisor.ready = True

    def wait_for_sample(self, supervisor: Supervisor, run: Run) -> None:
        self.tell(f"running the sample job once (run {run.pk})")

        def finished() -> bool:
            run.refresh_from_db(fields=["state"])
            return run.state in TERMINAL

        try:
            self.wait_until(supervisor, finished, SAMPLE_SECONDS, "")
        except CannotStart:
            self.tell("the sample run takes longer than usual; it goes on")
            return
        self.tell(f"the sample run ended: {run.get_state_display()}")

    @staticmethod
    def wait_until(supervisor: Supervisor, done: Callable[[], bool], seconds: float, sorry: str) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if supervisor.stopping:
                raise StopAsked
            if time.monotonic() > deadline:
                raise CannotStart(sorry)
            supervisor.pump(0.1)

    def greet(self, choice: engine.Choice) -> None:
        lines = ["", "ClawPanel is ready.", "", f"  Address   {address()}", f"  User      {env.ADMIN_USER}"]
        if self.generated_password:
            lines.append(f"  Password  {self.generated_password}   (shown only now: keep it)")
        elif env.ADMIN_PASSWORD:
            lines.append("  Password  as CLAWPANEL_ADMIN_PASSWORD said at the first start")
        else:
            lines.append("  Password  as shown at the first start (manage.py changepassword sets a new one)")
        lines += [f"  Executor  {choice.kind}: {choice.why}", "", "Ctrl-C stops the panel; crawls go on.", ""]
        for line in lines:
            self.tell(line)


class StopAsked(Exception):
    """Somebody pressed Ctrl-C before the panel was ready."""


def address() -> str:
    host = WILDCARDS.get(env.BIND, env.BIND)
    return env.PUBLIC_URL or f"http://{f'[{host}]' if ':' in host else quote(host)}:{env.PORT}"


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
