"""Starts a throw-away PostgreSQL and Valkey before Django reads its settings, unless URLs name servers."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

from clawpanel.up.servers import EmbeddedPostgres, EmbeddedValkey

PUBLIC_BASE = "python:3.12-slim"
OWN_BASE = "clawpanel-base:bookworm"
_started: list[EmbeddedPostgres | EmbeddedValkey] = []
_folders: list[Path] = []


def _choose_base_image() -> None:
    """Without a registry in reach the runner image stands on what deploy/test has made."""
    if os.environ.get("CLAWPANEL_RUNNER_BASE"):
        return
    try:
        client = docker.from_env(timeout=5)
        tags = {tag for image in client.images.list() for tag in image.tags}
        client.close()
    except DockerException:
        return
    if OWN_BASE in tags and PUBLIC_BASE not in tags:
        os.environ["CLAWPANEL_RUNNER_BASE"] = OWN_BASE


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    home = Path(tempfile.mkdtemp(prefix="claw-test-"))
    home.chmod(0o755)
    _folders.append(home)
    os.environ["CLAWPANEL_HOME"] = str(home)
    _choose_base_image()
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
