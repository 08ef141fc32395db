"""Requests that the panel itself makes to addresses which people have typed.

The name is resolved once, every address is checked, and the address that was checked is the one that is dialled: a name
that answers differently the second time gains nothing. No redirects, no proxies, one deadline for all.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import certifi
from django.utils.translation import gettext as _

from apps.core.errors import PanelError

DEADLINE_SECONDS = 10.0
TRIES = 3
MAX_BYTES = 1024 * 1024
MAX_URL = 8 * 1024

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# Whether an address may be dialled; the second are networks that somebody has allowed by name.
Guard = Callable[[Address, Collection[Network]], bool]

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\Z")
_NUMERIC = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)\Z")
# Addresses that lead to others by way of a translator.
_TUNNELS = [
    ipaddress.ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96")
]
_AGAIN = frozenset({429, 500, 502, 503, 504})


class CallRefused(PanelError):
    """It was not made, or came to nothing; the sentence does not tell what lives at an address."""

    code = "call_failed"


class _Again(Exception):
    """Worth another try; the sentence is for when there is none."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where an address leads."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Hosts ("api.example.com", "*.example.com", "api.example.com:8443", None: any) and networks, private ones too."""

    hosts: frozenset[str] | None = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, entries: Collection[str]) -> Allowed:
        """Names, addresses and networks, as an operator lists them."""
        hosts, networks = set(), []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                hosts.add(entry.lower())
        return cls(frozenset(hosts), tuple(networks))

    def takes(self, target: Target) -> bool:
        if (address := _literal(target.host)) is not None:
            return self.hosts is None or any(address in network for network in self.networks)
        if self.hosts is None:
            return target.port == _PORTS[target.scheme]
        if target.port != _PORTS[target.scheme]:
            return f"{target.host}:{target.port}" in self.hosts
        above = target.host.split(".")
        return target.host in self.hosts or any(
            "*." + ".".join(above[index:]) in self.hosts for index in range(1, len(above))
        )


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content: bytes


def is_public(address: Address, networks: Collection[Network]) -> bool:
    """In the open internet, or in a network that was allowed; never this machine or what only it can reach."""
    plain = getattr(address, "ipv4_mapped", None) or address
    if plain.is_loopback or plain.is_link_local or plain.is_unspecified or plain.is_multicast:
        return False
    if any(plain in network for network in networks if network.version == plain.version):
        return True
    if plain.version == 6 and any(plain in network for network in _TUNNELS):
        return False
    return plain.is_global and not plain.is_reserved


def target_of(url: str) -> Target:
    """Read an address, or raise CallRefused."""
    sentence = _("“%(url)s” is no address of the form https://host/path.") % {"url": url[:100]}
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise CallRefused(sentence)
    try:
        parts = urlsplit(url)
        port, host = parts.port, (parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise CallRefused(sentence) from error
    if parts.scheme not in _PORTS:
        raise CallRefused(_("Only http and https can be called."))
    if "@" in parts.netloc:
        raise CallRefused(_("An address holds no user or password: put them into a header from a secret."))
    literal = _literal(host)
    if literal is None and (not _HOST.match(host) or _NUMERIC.match(host) or len(host) > 253):
        raise CallRefused(sentence)
    path = parts.path or "/"
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], f"{path}?{parts.query}" if parts.query else path)


def listed_host(text: str) -> str:
    """An entry of the list, as it is compared, or CallRefused."""
    entry = text.strip().lower().rstrip(".")
    try:
        return str(ipaddress.ip_network(entry.strip("[]"), strict=False)).removesuffix("/32").removesuffix("/128")
    except ValueError:
        pass
    name, _colon, port = entry.removeprefix("*.").partition(":")
    fine = name.isascii() and "." in name and _HOST.match(name) and not _NUMERIC.match(name) and len(name) <= 253
    if not fine or (_colon and not (port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536)):
        raise CallRefused(
            _("Write a host such as api.example.com or *.example.com, with :port where it is another, or a network.")
        )
    return entry


def _literal(host: str) -> Address | None:
    try:
        return None if "%" in host else ipaddress.ip_address(host)
    except ValueError:
        return None


def fetch(
    method: str,
    url: str,
    *,
    allowed: Allowed,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
    tries: int = TRIES,
    max_bytes: int = MAX_BYTES,
    guard: Guard = is_public,
) -> Answer:
    """The answer, with a status of 200 to 299. Raises CallRefused.

    All tries together have the one deadline. `guard` is another only in tests.
    """
    target = target_of(url)
    if not allowed.takes(target):
        raise CallRefused(
            _("%(host)s is not among the hosts that may be called. An administrator can list it.")
            % {"host": target.shown}
        )
    end = time.monotonic() + deadline_seconds
    call = _Call(method, target, dict(headers or {}), body, allowed.networks, guard, max_bytes, end)
    for number in range(1, tries + 1):
        try:
            return call.make()
        except _Again as error:
            pause = 0.2 * 2**number
            if number == tries or time.monotonic() + pause >= end:
                raise CallRefused(str(error)) from error
            time.sleep(pause)
    raise AssertionError("there is at least one try")


@dataclass(slots=True)
class _Call:
    method: str
    target: Target
    headers: dict[str, str]
    body: bytes | None
    networks: Collection[Network]
    guard: Guard
    max_bytes: int
    end: float
    _sockets: list[socket.socket] = field(default_factory=list)

    def make(self) -> Answer:
        self._sockets = []
        # A header that comes byte by byte resets every read timeout: only a cut ends it.
        watchdog = threading.Timer(self._left(), self._cut)
        watchdog.daemon = True
        watchdog.start()
        connection = _Dialled(self)
        try:
            answer = self._exchange(connection)
        except (OSError, http.client.HTTPException, zlib.error) as error:
            if self._left() <= 0.01:
                raise self._too_slow() from error
            raise _Again(_("%(host)s could not be reached.") % {"host": self.target.shown}) from error
        finally:
            watchdog.cancel()
            connection.close()
        if self._left() <= 0:
            # The cut itself can look like a short, good body.
            raise self._too_slow()
        return answer

    def _exchange(self, connection: _Dialled) -> Answer:
        ours = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "ClawPanel"}
        connection.request(self.method, self.target.path, body=self.body, headers={**ours, **self.headers})
        response = connection.getresponse()
        status = response.status
        values = {"host": self.target.shown, "status": status}
        if 300 <= status < 400:
            raise CallRefused(_("%(host)s answered with a redirect, which is not followed.") % values)
        if status in _AGAIN:
            raise _Again(_("%(host)s answered with status %(status)d.") % values)
        if not 200 <= status < 300:
            raise CallRefused(_("%(host)s answered with status %(status)d.") % values)
        return Answer(status, self._content(response))

    def _content(self, response: http.client.HTTPResponse) -> bytes:
        packed = (response.getheader("Content-Encoding") or "identity").strip().lower()
        if packed not in ("identity", "gzip", "deflate"):
            raise CallRefused(_("The answer of %(host)s cannot be read.") % {"host": self.target.shown})
        unpack = zlib.decompressobj(47) if packed != "identity" else None
        found = bytearray()
        while part := response.read1(8192):
            if self._left() <= 0:
                raise self._too_slow()
            # Never more than is wanted is unpacked, whatever the part would become.
            found += part if unpack is None else unpack.decompress(part, self.max_bytes + 1 - len(found))
            if len(found) > self.max_bytes or (unpack is not None and unpack.unconsumed_tail):
                raise CallRefused(
                    _("The answer of %(host)s is larger than %(kib)d KiB.")
                    % {"host": self.target.shown, "kib": self.max_bytes // 1024}
                )
        if response.length:
            raise http.client.IncompleteRead(bytes(found))
        return bytes(found)

    # -- connecting -------------------------------------------------------------------------------------------------

    def dial(self) -> socket.socket:
        """A connection to an address that was checked."""
        addresses = self._resolved()
        last: OSError = OSError("no address")
        for family, kind, protocol, _name, where in addresses:
            plain = socket.socket(family, kind, protocol)
            self._sockets.append(plain)
            try:
                plain.settimeout(max(0.1, min(3.0, self._left())))
                plain.connect(where)
                return self._secured(plain)
            except OSError as error:
                last = error
                plain.close()
        raise last

    def _secured(self, plain: socket.socket) -> socket.socket:
        if self.target.scheme == "http":
            return plain
        wrapped = _tls().wrap_socket(plain, server_hostname=self.target.host, do_handshake_on_connect=False)
        self._sockets.append(wrapped)
        wrapped.do_handshake()
        return wrapped

    def _resolved(self) -> list[Any]:
        found = _looked_up(self.target.host, self.target.port, max(0.1, self._left()))
        if not found:
            raise OSError("no address")
        for entry in found:
            if not self.guard(ipaddress.ip_address(entry[4][0].split("%")[0]), self.networks):
                raise CallRefused(_("The address of %(host)s is not allowed.") % {"host": self.target.shown})
        return found

    def _left(self) -> float:
        return self.end - time.monotonic()

    def _cut(self) -> None:
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def _too_slow(self) -> CallRefused:
        return CallRefused(_("%(host)s did not answer in time.") % {"host": self.target.shown})


class _Dialled(http.client.HTTPConnection):
    """Speaks over the connection that the call makes."""

    def __init__(self, call: _Call) -> None:
        super().__init__(call.target.host, call.target.port)
        self.default_port = _PORTS[call.target.scheme]
        self._call = call

    def connect(self) -> None:
        self.sock = self._call.dial()


def _looked_up(host: str, port: int, seconds: float) -> list[Any]:
    """The system's resolver knows no deadline: it is left behind when it takes too long."""
    found: list[Any] = []
    failed: list[OSError] = []

    def look() -> None:
        try:
            found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            failed.append(error)
        except UnicodeError as error:
            failed.append(OSError(str(error)))

    worker = threading.Thread(target=look, name="name look-up", daemon=True)
    worker.start()
    worker.join(seconds)
    if worker.is_alive():
        raise TimeoutError("the name was not resolved in time")
    if failed:
        raise failed[0]
    return list(found)


@cache
def _tls() -> ssl.SSLContext:
    """The authorities of the system, which an operator may have added to, and the usual ones where it has none."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
