"""What Celery is told of its broker: the server of REDIS_URL, or another one of CLAWPANEL_BROKER_URL."""

from __future__ import annotations

import socket
from typing import Any

from apps.core import valkey
from clawpanel import env
from clawpanel.refusal import CannotStart

RABBITMQ = ("amqp://", "amqps://")
SLOWEST_SECONDS = 5
# Noticed within 25 s where the system knows these words.
_PATIENCE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
KEEPALIVE = {getattr(socket, name): value for name, value in _PATIENCE.items() if hasattr(socket, name)}


def celery(url: str) -> tuple[str, dict[str, Any]]:
    """Broker URL and transport options; refuses what is no address."""
    if env.REDIS_URL:
        _check("REDIS_URL", env.REDIS_URL)
    if url.startswith(RABBITMQ):
        return url, {"read_timeout": SLOWEST_SECONDS, "write_timeout": SLOWEST_SECONDS}
    if env.BROKER_URL:
        _check("CLAWPANEL_BROKER_URL", env.BROKER_URL, *RABBITMQ)
    options = {
        "socket_timeout": SLOWEST_SECONDS,
        "socket_connect_timeout": 2,
        # A worker waits for messages without a limit: of a host that vanished only the kernel can tell it.
        "socket_keepalive": True,
        "socket_keepalive_options": KEEPALIVE,
        **valkey.celery_options(url),
    }
    return valkey.celery_url(url), options


def _check(name: str, url: str, *also: str) -> None:
    try:
        valkey.check(url)
    except ValueError as error:
        hint = f" ({' and '.join(also)} are taken too)" if also else ""
        raise CannotStart(f"{name} cannot be used: {error}{hint}.") from error
