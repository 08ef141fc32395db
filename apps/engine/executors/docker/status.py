"""Whether the engine can run attempts now, and what an operator should know about it."""

from __future__ import annotations

import threading
from typing import Any

from docker import APIClient

from apps.engine.docker_api import HEALTH_TIMEOUT_SECONDS, connect, translated
from apps.engine.errors import EngineError
from apps.engine.executors.docker.network import RunNetwork
from apps.engine.settings import EngineSettings
from apps.engine.types import EngineHealth


class HealthCheck:
    """Asks over a connection of its own with a short timeout, kept while it answers: it is asked all day long."""

    def __init__(self, settings: EngineSettings, network: RunNetwork) -> None:
        self._settings = settings
        self._network = network
        self._lock = threading.Lock()
        self._api: APIClient | None = None

    def ask(self) -> EngineHealth:
        with self._lock:
            try:
                return _health(self._info(), self._network)
            except EngineError as error:
                self._forget()
                return EngineHealth(ok=False, message=str(error))

    def _info(self) -> dict[str, Any]:
        if self._api is None:
            self._api = connect(
                self._settings.docker_url, timeout=HEALTH_TIMEOUT_SECONDS, certs=self._settings.docker_certs
            )
        with translated():
            info: dict[str, Any] = self._api.info()
        return info

    def _forget(self) -> None:
        if self._api is not None:
            self._api.close()
            self._api = None


def _health(info: dict[str, Any], network: RunNetwork) -> EngineHealth:
    warnings = [network.warning] if network.warning else []
    if not info.get("MemoryLimit", True):
        warnings.append("The Docker Engine cannot limit memory: a run may use all of this machine.")
    if not info.get("PidsLimit", True):
        warnings.append("The Docker Engine cannot limit processes: a run may start any number.")
    if not info.get("LiveRestoreEnabled", False):
        warnings.append("live-restore is off: a restart of the Docker Engine ends every run. See daemon.json.")
    return EngineHealth(
        ok=True,
        version=str(info.get("ServerVersion", "")),
        cpus=int(info.get("NCPU", 0)),
        memory_bytes=int(info.get("MemTotal", 0)),
        warnings=tuple(warnings),
    )
