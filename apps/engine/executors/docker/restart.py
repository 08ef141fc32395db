"""Whether a container ended because the engine itself was ended or started anew."""

from __future__ import annotations

from datetime import datetime

from docker import APIClient
from docker.errors import NotFound

from apps.engine.docker_api import translated
from apps.engine.executors.docker.instants import instant
from apps.engine.types import Observation, Phase

# By signal: the engine ends containers when it is ended, and what outlived it when it begins without live-restore;
# 255 is what it writes for those that it only finds dead, after a loss of power.
_CODES = (137, 143, 255)
_OWN_NETWORK = "bridge"


def ended_by_restart(api: APIClient, seen: Observation) -> bool:
    """It began under an engine that is not there any more, and was killed."""
    if seen.phase is not Phase.EXITED or seen.exit_code not in _CODES or seen.oom_killed or seen.started_at is None:
        return False
    begun = _engine_begun(api)
    return begun is not None and seen.started_at < begun


def _engine_begun(api: APIClient) -> datetime | None:
    """The engine does not say when it began, but makes its own network each time unless it found containers alive."""
    with translated():
        try:
            network = api.inspect_network(_OWN_NETWORK)
        except NotFound:
            return None
    return instant(network.get("Created"))
