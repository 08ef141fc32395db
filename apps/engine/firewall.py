"""Packet rules between the runs' bridge, this host and the networks behind it.

Two chains of our own: Docker's DOCKER-USER is asked for forwarded packets only, so without a rule in INPUT a run would
reach every service of the host that listens on all addresses.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from apps.engine.errors import EngineError

logger = logging.getLogger(__name__)

INPUT_CHAIN = "CLAW-RUNS-IN"
FORWARD_CHAIN = "CLAW-RUNS-FWD"
_PRIVATE = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
_MAIL_PORTS = "25,465,587"
_MOST_CONNECTIONS = 500
# Rejected, not dropped: a spider gets its error at once instead of a timeout.
_REJECT = "-j REJECT --reject-with icmp-admin-prohibited"
_ANSWERS = "-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"
_OPENED = re.compile(rf"-A {INPUT_CHAIN} -d (\S+)/32 -p tcp -m tcp --dport (\d+) -j ACCEPT")
_WAIT_SECONDS = "5"
_KNOCK_SECONDS = 0.3
_DNS = "53"
_TIMEOUT_SECONDS = 20


class FirewallFailed(EngineError):
    """The rules could not be set."""


@dataclass(frozen=True, slots=True)
class Firewall:
    """`open_address` is the one HOST:PORT of this host that a run may reach (the demo site)."""

    bridge: str
    dns: tuple[str, ...] = ()
    open_address: str = ""

    def apply(self) -> str:
        """Set the rules, replacing older ones at once. Returns a warning sentence, empty when all is set."""
        missing = _what_is_missing()
        if missing:
            return f"The network of runs is not fenced off from this host: {missing}."
        try:
            try:
                self._restore(limit_connections=True)
            except FirewallFailed:
                self._restore(limit_connections=False)  # a kernel without connlimit
            self._jump("INPUT", INPUT_CHAIN)
            self._jump("DOCKER-USER", FORWARD_CHAIN)
        except FirewallFailed as error:
            logger.warning("firewall rules not set: %s", error)
            return f"The network of runs is not fenced off from this host: {error}"
        return ""

    def _restore(self, *, limit_connections: bool) -> None:
        # One restore replaces both chains in one step: no moment without rules, and no growing list.
        _run(
            ["iptables-restore", "-w", _WAIT_SECONDS, "--noflush"],
            rules_text(
                dns=self.dns,
                open_addresses=sorted({self.open_address, *_open_for_others()}),
                limit_connections=limit_connections,
            ),
        )

    def _jump(self, chain: str, target: str) -> None:
        rule = ["-i", self.bridge, "-j", target]
        try:
            _run(["iptables", "-w", _WAIT_SECONDS, "-C", chain, *rule])
        except FirewallFailed:
            _run(["iptables", "-w", _WAIT_SECONDS, "-I", chain, "1", *rule])


def rules_text(*, dns: Iterable[str], open_addresses: Iterable[str], limit_connections: bool) -> str:
    """Both chains in the form of iptables-restore."""
    to_host = [_ANSWERS]
    for address in open_addresses:
        host, _, port = address.rpartition(":")
        if host and port:
            to_host.append(f"-d {host}/32 -p tcp --dport {port} -j ACCEPT")
    beyond = [_ANSWERS]
    for server in dns:
        asks = [f"-d {server}/32 -p {protocol} --dport 53 -j" for protocol in ("udp", "tcp")]
        beyond += [f"{ask} RETURN" for ask in asks]
        to_host += [f"{ask} ACCEPT" for ask in asks]  # a resolver on this host itself
    to_host.append(_REJECT)
    beyond += [f"-d {network} {_REJECT}" for network in _PRIVATE]
    beyond.append(f"-p tcp -m multiport --dports {_MAIL_PORTS} {_REJECT}")
    if limit_connections:
        limit = f"-m connlimit --connlimit-above {_MOST_CONNECTIONS} --connlimit-mask 32"
        beyond.append(f"-p tcp --syn {limit} {_REJECT}")
    beyond.append("-j RETURN")
    lines = ["*filter", f":{INPUT_CHAIN} - [0:0]", f":{FORWARD_CHAIN} - [0:0]"]
    lines += [f"-A {INPUT_CHAIN} {rule}" for rule in to_host]
    lines += [f"-A {FORWARD_CHAIN} {rule}" for rule in beyond]
    return "\n".join([*lines, "COMMIT", ""])


def _open_for_others() -> list[str]:
    """Demo sites of other panels on this machine: the bridge is shared, and so are its rules. Dead ones are closed."""
    try:
        rules = _run(["iptables", "-w", _WAIT_SECONDS, "-S", INPUT_CHAIN])
    except FirewallFailed:
        return []  # the first panel here
    return [f"{host}:{port}" for host, port in _OPENED.findall(rules) if port != _DNS and _listens(host, int(port))]


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_KNOCK_SECONDS):
            return True
    except OSError:
        return False


def name_servers(
    files: Sequence[Path] = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")),
) -> tuple[str, ...]:
    """IPv4 name servers of this host that a container may have to ask itself; those on loopback the engine asks."""
    found: list[str] = []
    for path in files:
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if len(words) >= 2 and words[0] == "nameserver" and _is_ipv4_beyond_loopback(words[1]):
                found.append(words[1])
    return tuple(dict.fromkeys(found))


def _is_ipv4_beyond_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.version == 4 and not address.is_loopback


def _what_is_missing() -> str:
    if os.geteuid() != 0:
        return "only root may set packet rules"
    if not shutil.which("iptables-restore"):
        return "iptables is not installed"
    return ""


def _run(command: list[str], text: str = "") -> str:
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FirewallFailed(f"{command[0]} could not be run ({error}).") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise FirewallFailed(f"{command[0]}: {lines[0]}")
    return done.stdout
