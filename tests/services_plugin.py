"""Starts a throw-away PostgreSQL and Valkey before Django reads its settings, unless URLs name servers."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from clawpanel.up.servers import EmbeddedPostgres, EmbeddedValkey

_started: list[EmbeddedPostgres | EmbeddedValkey] = []
_folders: list[Path] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    home = Path(tempfile.mkdtemp(prefix="claw-test-"))
    home.chmod(0o755)
    _folders.append(home)
    os.environ["CLAWPANEL_HOME"] = str(home)
    os.environ.setdefault("CLAWPANEL_INSTALL", "t" + home.name[-8:].lower().replace("_", "x"))
    if "DATABASE_URL" not in os.environ:
        postgres = EmbeddedPostgres(home, settings={"fsync": "off", "synchronous_commit": "off"})
        postgres.start()
        os.environ["DATABASE_URL"] = postgres.url
        _started.append(postgres)
    if "REDIS_URL" not in os.environ:
        valkey = EmbeddedValkey(home, durable=False)
        valkey.start()
        os.environ["REDIS_URL"] = valkey.url
        _started.append(valkey)


def pytest_unconfigure(config: pytest.Config) -> None:
    while _started:
        _started.pop().stop()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
