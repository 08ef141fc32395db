"""Where the embedded servers keep their state and sockets; also tells settings their URLs when none are given."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

POSTGRES_PORT = 5432  # part of a socket's name only: nothing listens on TCP
SOCKET_PATH_MAX = 100  # sun_path holds 108 bytes; the servers append to the name for a moment
STATE_OF_ROOT = Path("/var/lib/clawpanel")
SOCKETS_OF_ROOT = Path("/run")
VALKEY_SOCKET = "valkey.sock"


def _mark(home: Path) -> str:
    return hashlib.sha256(str(home).encode()).hexdigest()[:12]


def searchable_by_all(folder: Path) -> bool:
    """Whether another account may pass through the folder and everything above it."""
    return all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents) if path.exists())


def state_dir(home: Path) -> Path:
    """The folder of PostgreSQL's and Valkey's data.

    The home folder itself, but PostgreSQL refuses to run as root: its own account must reach the data, and below
    /root it cannot. Then the data lies under /var/lib, and home/postgres points there, which makes the choice last.
    """
    known = home / "postgres"
    if known.is_symlink():
        return known.resolve().parent
    if known.is_dir() or os.geteuid() != 0 or searchable_by_all(home):
        return home
    return STATE_OF_ROOT / _mark(home)


def socket_dir(home: Path) -> Path:
    """A private folder whose path is short enough for a unix socket."""
    wanted = state_dir(home) / "run"
    if len(str(wanted / f".s.PGSQL.{POSTGRES_PORT}.lock")) <= SOCKET_PATH_MAX:
        return wanted
    base = SOCKETS_OF_ROOT if os.geteuid() == 0 else Path(tempfile.gettempdir())
    return base / f"clawpanel-{os.geteuid()}-{_mark(home)}"


def postgres_url(home: Path) -> str:
    return f"postgres://postgres@{quote(str(socket_dir(home)), safe='')}:{POSTGRES_PORT}/clawpanel"


def valkey_url(home: Path) -> str:
    return f"unix://{socket_dir(home) / VALKEY_SOCKET}?db=0"
