"""What starting a panel and joining as a node have in common. Imports no Django: this process stays."""

from __future__ import annotations

import contextlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from clawpanel import env
from clawpanel.refusal import CannotStart
from clawpanel.up import checks, processes, services
from clawpanel.up.supervisor import Service, Supervisor

LOOK_EVERY_SECONDS = 0.25

Say = Callable[[str, str], None]


class StopAsked(Exception):
    """Somebody pressed Ctrl-C before everything was ready."""


@dataclass
class Foreground(ABC):
    """One supervised life in the foreground; a subclass says what is checked and started.

    `say(who, text)` shows a line.
    """

    say: Say

    who: ClassVar[str]
    going: ClassVar[str]
    gone: ClassVar[str]

    @abstractmethod
    def check(self) -> None:
        """Raises `CannotStart`. Nothing of an earlier start is in the way any more."""

    @abstractmethod
    def start(self, supervisor: Supervisor) -> None:
        """Everything up to the moment when it is ready."""

    def run(self) -> None:
        """Until somebody asks for an end."""
        checks.writable(env.HOME)
        with checks.only_one(env.HOME):
            for name in processes.stop_leftovers(env.HOME):
                self.tell(f"stopped {name}, left behind by an earlier start")
            self.check()
            supervisor = Supervisor(home=env.HOME, say=self.say)
            with supervisor.signals():
                try:
                    with contextlib.suppress(StopAsked):
                        self.start(supervisor)
                        supervisor.run_until_stopped()
                finally:
                    self.tell(self.going)
                    supervisor.stop()
                    self.tell(f"{self.gone}; crawls in containers go on and are picked up at the next start")

    def tell(self, text: str) -> None:
        self.say(self.who, text)


def found_by(supervisor: Supervisor, preparing: Callable[[Path], Service], sorry: str) -> dict[str, Any]:
    """What needs Django: a process of its own that ends, so that its memory does not stay. It leaves its answer."""
    result = env.HOME / "found.json"
    result.unlink(missing_ok=True)
    code = supervisor.run_once(preparing(result))
    if supervisor.stopping:
        raise StopAsked
    if code:
        raise CannotStart(sorry)
    found: dict[str, Any] = json.loads(result.read_text())
    result.unlink()
    return found


def start_demo(supervisor: Supervisor, host: str) -> str:
    """The address of the demo site that runs of this machine can reach, started unless another one is named."""
    if env.DEMO_SITE or not services.DEMO_SERVER.is_file():
        return env.DEMO_SITE
    checks.port_is_free(host, env.DEMO_PORT, "CLAWPANEL_DEMO_PORT")
    supervisor.add(services.demo(f"{host}:{env.DEMO_PORT}"))
    return f"http://{host}:{env.DEMO_PORT}/"


def wait_until(supervisor: Supervisor, done: Callable[[], bool], seconds: float, sorry: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        again = time.monotonic() + LOOK_EVERY_SECONDS
        if again > deadline:
            raise CannotStart(sorry)
        while (left := again - time.monotonic()) > 0:
            supervisor.pump(left)
            if supervisor.stopping:
                raise StopAsked
