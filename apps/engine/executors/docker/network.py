"""The bridge that all runs share, and its fence."""

from __future__ import annotations

import ipaddress
import logging
from typing import Any

from docker import APIClient
from docker.errors import APIError, NotFound

from apps.engine.docker_api import CONFLICT, translated
from apps.engine.errors import CreateFailed
from apps.engine.firewall import Firewall, name_servers
from apps.engine.settings import EngineSettings

logger = logging.getLogger(__name__)

_OPTIONS = {
    "com.docker.network.bridge.enable_icc": "false",  # runs do not see each other
    "com.docker.network.bridge.enable_ip_masquerade": "true",
}


class RunNetwork:
    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self.gateway = ""
        self.warning = ""

    def ensure(self, api: APIClient) -> None:
        """Make the network when missing and set the packet rules. Safe to repeat, also by two workers at once."""
        details = self._find(api) or self._create(api)
        bridge = (details.get("Options") or {}).get("com.docker.network.bridge.name", "")
        if details.get("Driver") != "bridge" or bridge != self._settings.bridge:
            raise CreateFailed(
                f"A Docker network named {self._settings.network} exists that is not ours. Remove or rename it."
            )
        pool = details["IPAM"]["Config"][0]
        self.gateway = str(pool.get("Gateway") or _first_host(pool["Subnet"])).split("/")[0]
        self.warning = Firewall(self._settings.bridge, name_servers(), self._open_address()).apply()

    def _open_address(self) -> str:
        host, _, port = self._settings.demo_address.rpartition(":")
        if not port:
            return ""
        return f"{host or self.gateway}:{port}"

    def _find(self, api: APIClient) -> dict[str, Any] | None:
        with translated():
            try:
                details: dict[str, Any] = api.inspect_network(self._settings.network)
            except NotFound:
                return None
            return details

    def _create(self, api: APIClient) -> dict[str, Any]:
        options = _OPTIONS | {"com.docker.network.bridge.name": self._settings.bridge}
        with translated():
            try:
                api.create_network(self._settings.network, driver="bridge", options=options, check_duplicate=True)
            except APIError as error:
                if error.status_code != CONFLICT:
                    raise
            details: dict[str, Any] = api.inspect_network(self._settings.network)
            return details


def _first_host(subnet: str) -> str:
    return str(next(ipaddress.ip_network(subnet).hosts()))
