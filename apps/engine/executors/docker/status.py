"""Whether the engine can run attempts now, and what an operator should know about it."""

from __future__ import annotations

from typing import Any

from apps.engine.docker_api import HEALTH_TIMEOUT_SECONDS, connect, translated
from apps.engine.errors import EngineError
from apps.engine.executors.docker.network import RunNetwork
from apps.engine.settings import EngineSettings
from apps.engine.types import EngineHealth


def engine_health(settings: EngineSettings, network: RunNetwork) -> EngineHealth:
    try:
        api = connect(settings.docker_url, timeout=HEALTH_TIMEOUT_SECONDS)
        try:
            with translated():
                info: dict[str, Any] = api.info()
        finally:
            api.close()
    except EngineError as error:
        return EngineHealth(ok=False, message=str(error))
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
