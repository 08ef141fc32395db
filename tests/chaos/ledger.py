"""Containers as the engine tells of them, recorded beside the panel: it is the panel that is judged."""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime
from typing import Any

import docker

from tests.chaos.evidence import ContainerEvent

KINDS = ["start", "die", "destroy"]


class Ledger:
    """Listens from `with` on until its end."""

    def __init__(self, install: str) -> None:
        self.install = install
        self.entries: list[ContainerEvent] = []
        self._client = docker.from_env()
        self._stream: Any = None
        self._thread = threading.Thread(target=self._listen, name="ledger", daemon=True)

    def __enter__(self) -> Ledger:
        wanted = {"type": "container", "event": KINDS, "label": f"clawpanel.install={self.install}"}
        self._stream = self._client.events(decode=True, filters=wanted)
        self._thread.start()
        return self

    def _listen(self) -> None:
        for event in self._stream:
            labels = event["Actor"]["Attributes"]
            if not labels.get("clawpanel.run", "").isdigit():
                continue
            self.entries.append(
                ContainerEvent(
                    at=datetime.fromtimestamp(event["timeNano"] / 1e9, UTC),
                    what=event["Action"],
                    container=event["Actor"]["ID"],
                    run=int(labels["clawpanel.run"]),
                    attempt=int(labels["clawpanel.attempt"]),
                )
            )

    def containers(self, *, probes: bool = False) -> list[Any]:
        """Those of the install that exist now; those of no run (the probe of a worker that begins) only on demand."""
        found = self._client.containers.list(all=True, ignore_removed=True, filters={"name": f"^claw-{self.install}-"})
        return [one for one in found if probes or one.labels.get("clawpanel.run", "").isdigit()]

    def clear(self) -> None:
        """At the very end: what the panel should not have left behind must not stay on this machine either."""
        for one in self.containers(probes=True):
            with contextlib.suppress(docker.errors.APIError):
                one.remove(force=True)

    def __exit__(self, *_: object) -> None:
        self.clear()
        self._stream.close()
        self._thread.join(5)
        self._client.close()
