"""The server of hints, live lines and caches: one Valkey or Redis, or the master that Sentinels name.

Everybody who speaks to it asks here, so that one URL moves all of them. Imports no Django: settings read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

import redis
import redis.asyncio

SENTINEL = "sentinel"
SENTINEL_PORT = 26379
USUAL_MASTER = "mymaster"
SCHEMES = ("redis", "rediss", "unix", SENTINEL)
# A Sentinel that does not answer is passed over for the next; the client's own three tries would take seconds.
_ASKING: Mapping[str, Any] = {"socket_timeout": 1.0, "socket_connect_timeout": 1.0, "retry": None}


@dataclass(frozen=True, slots=True)
class Sentinels:
    """`login` is for the master, `own_login` for the Sentinels themselves."""

    hosts: tuple[tuple[str, int], ...]
    master: str
    db: int
    login: Mapping[str, str] = field(default_factory=dict)
    own_login: Mapping[str, str] = field(default_factory=dict)

    @property
    def asking(self) -> dict[str, Any]:
        return {**_ASKING, **self.own_login}


def check(url: str) -> None:
    """Raises ValueError with a sentence when it is no address of a server."""
    parts = _parts(url)
    for part in parts:
        if part.scheme not in SCHEMES:
            raise ValueError(f"it begins with {part.scheme or 'no scheme'}://, not with one of {', '.join(SCHEMES)}")
        if part.scheme != "unix" and not part.hostname:
            raise ValueError("it names no host")
    if parts[0].scheme == SENTINEL:
        sentinels(url)
    elif len(parts) > 1:
        raise ValueError("only sentinel:// takes several addresses")


def _parts(url: str) -> list[SplitResult]:
    return [urlsplit(part.strip()) for part in url.split(";") if part.strip()] or [urlsplit("")]


def sentinels(url: str) -> Sentinels | None:
    """`sentinel://:password@one:26379;sentinel://two:26379/0?master_name=claw`; None for any other URL.

    Password, database and query may stand in any of the parts.
    """
    parts = _parts(url)
    if parts[0].scheme != SENTINEL:
        return None
    query = {key: values[-1] for part in parts for key, values in parse_qs(part.query).items()}
    login = {
        name: unquote(value)
        for part in parts
        for name, value in (("username", part.username), ("password", part.password))
        if value
    }
    own = {name.removeprefix("sentinel_"): query[name] for name in query if name.startswith("sentinel_")}
    database = next((part.path.strip("/") for part in parts if part.path.strip("/")), "0")
    if not database.isdigit():
        raise ValueError(f"its database is a number, not {database!r}")
    if unknown := set(query) - {"master_name", "sentinel_username", "sentinel_password"}:
        raise ValueError(f"it has an unknown option {min(unknown)!r}")
    hosts = tuple((part.hostname or "", part.port or SENTINEL_PORT) for part in parts)
    return Sentinels(hosts, query.get("master_name", USUAL_MASTER), int(database), login, own)


def pool(url: str, **options: Any) -> redis.ConnectionPool:
    found = sentinels(url)
    if found is None:
        return redis.ConnectionPool.from_url(url, **options)
    asked = redis.Sentinel(list(found.hosts), sentinel_kwargs=found.asking)  # type: ignore[no-untyped-call]
    given = {"db": found.db, **found.login, **options}
    return redis.sentinel.SentinelConnectionPool(found.master, asked, **given)  # type: ignore[no-untyped-call]


def client(url: str, **options: Any) -> redis.Redis:
    """A client whose connections go to whoever is the master when they are made."""
    return redis.Redis.from_pool(pool(url, **options))


def async_client(url: str, **options: Any) -> redis.asyncio.Redis:
    """The same for an event loop."""
    found = sentinels(url)
    if found is None:
        return redis.asyncio.Redis.from_url(url, **options)
    return redis.asyncio.Redis.from_pool(_async_pool(found, options))


def _async_pool(found: Sentinels, options: Mapping[str, Any]) -> redis.asyncio.ConnectionPool:
    asked = redis.asyncio.Sentinel(list(found.hosts), sentinel_kwargs=found.asking)  # type: ignore[no-untyped-call]
    given = {"db": found.db, **found.login, **options}
    return redis.asyncio.sentinel.SentinelConnectionPool(found.master, asked, **given)  # type: ignore[no-untyped-call]


class CachePool:
    """What Django's cache calls to get its pool: it knows only `from_url`."""

    @staticmethod
    def from_url(url: str, **options: Any) -> redis.ConnectionPool:
        return pool(url, **options)


def channel_host(url: str) -> dict[str, Any]:
    """The server in the words of channels_redis."""
    found = sentinels(url)
    if found is None:
        return {"address": url}
    return {
        "sentinels": list(found.hosts),
        "sentinel_kwargs": found.asking,
        "master_name": found.master,
        "db": found.db,
        **found.login,
    }


def celery_url(url: str) -> str:
    """The server in the words of Celery, which spells a unix socket and Sentinels differently."""
    found = sentinels(url)
    if found is None:
        return url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)
    user, password = (quote(found.login.get(name, ""), safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    return ";".join(
        f"{SENTINEL}://{login}{f'[{host}]' if ':' in host else host}:{port}/{found.db}" for host, port in found.hosts
    )


def celery_options(url: str) -> dict[str, Any]:
    found = sentinels(url)
    return {} if found is None else {"master_name": found.master, "sentinel_kwargs": found.asking}
