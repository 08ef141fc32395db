"""The images and files for production."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE = "clawpanel:test"
INDEX = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_CERT")
COMPOSE_NEEDS = {
    "POSTGRES_PASSWORD": "a",
    "VALKEY_PASSWORD": "b",
    "CLAWPANEL_SECRET_KEY": "c",
    "CLAWPANEL_ENCRYPTION_KEYS": "d",
    "CLAWPANEL_ADMIN_PASSWORD": "e",
    "DATABASE_URL": "postgres://far/claw",
    "REDIS_URL": "redis://far",
    "CLAWPANEL_INSTALL": "f",
    "CLAWPANEL_NODE": "g",
}
LOOK = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/healthz', timeout=5).status)"


def docker(*arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=seconds, check=False)


@pytest.fixture(scope="module")
def image() -> str:
    base = os.environ.get("CLAWPANEL_RUNNER_BASE") or "clawpanel-base:bookworm"
    if docker("image", "inspect", base).returncode:
        base = "python:3.12-slim"
    arguments = [part for name in INDEX if name in os.environ for part in ("--build-arg", f"{name}={os.environ[name]}")]
    command = ["build", "--quiet", "--network", "host", "--build-arg", f"BASE={base}", *arguments]
    built = docker(*command, "-f", "deploy/images/panel/Dockerfile", "-t", IMAGE, str(ROOT), seconds=900)
    assert built.returncode == 0, built.stdout + built.stderr
    return IMAGE


@pytest.fixture
def web(image: str) -> Iterator[str]:
    started = docker("run", "--detach", "--env", "CLAWPANEL_SECRET_KEY=only-a-test", image)
    assert started.returncode == 0, started.stderr
    name = started.stdout.strip()
    yield name
    docker("rm", "--force", "--volumes", name)


@pytest.mark.docker
@pytest.mark.timeout(1000)
def test_the_panel_image_serves(web: str) -> None:
    deadline = time.monotonic() + 60
    while (looked := docker("exec", web, "python3", "-c", LOOK)).stdout.strip() != "200":
        assert time.monotonic() < deadline, looked.stderr + docker("logs", web).stdout
        time.sleep(0.5)


@pytest.mark.docker
@pytest.mark.timeout(1000)
def test_the_panel_image_has_no_secret_and_no_test(image: str) -> None:
    listed = docker("run", "--rm", image, "sh", "-c", "ls -a /app; ls /app/var 2>/dev/null; env").stdout
    assert "manage.py" in listed
    for word in ("tests", ".git\n", "secret_key", "PIP_"):
        assert word not in listed


@pytest.mark.parametrize("name", ["compose.yml", "compose.node.yml"])
def test_the_compose_file_is_valid(name: str) -> None:
    """By the tool where there is one; what matters most is checked without."""
    compose = ROOT / "deploy" / name
    if shutil.which("docker-compose"):
        done = subprocess.run(
            ["docker-compose", "-f", str(compose), "config", "-q"],
            env={**os.environ, **COMPOSE_NEEDS},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert ":latest" not in compose.read_text().replace("CLAWPANEL_TAG:-latest", "")
