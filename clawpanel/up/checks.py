"""What can be wrong with a machine, found before anything is started."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from contextlib import closing
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psycopg

from clawpanel import env
from clawpanel.refusal import CannotStart

OLDEST_POSTGRES = 140000


def writable(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise CannotStart(
            f"No right to write to {home} ({error.strerror}). Set CLAWPANEL_HOME to a folder of your own."
        ) from error


def only_one(home: Path) -> IO[str]:
    """Hold the folder's lock for as long as the returned file is open; the kernel frees it with the process."""
    file = (home / "up.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise CannotStart(
            f"ClawPanel is already running on {home} (process {holder}). "
            "Stop it first, or set CLAWPANEL_HOME and CLAWPANEL_PORT for a second one."
        ) from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def port_is_free(host: str, port: int, variable: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CannotStart(
                f"Port {port} on {host or 'all addresses'} cannot be used ({error.strerror}). "
                f"Set {variable} to another port."
            ) from error


def shared_settings() -> None:
    """What a node must have from its panel. Made up here it would look well and fail later: a secret that nobody can
    open, live lines that nobody reads."""
    given = {
        "DATABASE_URL": env.DATABASE_URL,
        "REDIS_URL": env.REDIS_URL,
        "CLAWPANEL_INSTALL": env.INSTALL,
        "CLAWPANEL_ENCRYPTION_KEYS": env.ENCRYPTION_KEYS,
    }
    if missing := [name for name, value in given.items() if not value]:
        raise CannotStart(
            f"A node must be given its panel's {', '.join(missing)}: "
            "`manage.py node_settings` on the panel's machine prints them."
        )


def database_answers(url: str) -> None:
    """`url` is an external server's."""
    parts = urlsplit(url)
    try:
        with psycopg.connect(url.replace("postgis://", "postgres://", 1), connect_timeout=5) as connection:
            version = connection.info.server_version
    except (psycopg.Error, UnicodeError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        if parts.password:
            reason = reason.replace(parts.password, "***")
        raise CannotStart(f"The database of DATABASE_URL does not answer: {reason}") from error
    if version < OLDEST_POSTGRES:
        raise CannotStart(f"PostgreSQL 14 or newer is needed; DATABASE_URL names version {version // 10000}.")
