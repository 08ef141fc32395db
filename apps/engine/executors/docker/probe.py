"""A container like a run's that tries what it must not be able to do, and writes where we must be able to read."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from docker import APIClient
from docker.errors import APIError, NotFound

from apps.engine.builder import ImageBuilder
from apps.engine.docker_api import create_container, translated
from apps.engine.errors import EngineError
from apps.engine.executors.docker import profile
from apps.engine.executors.docker.network import RunNetwork
from apps.engine.executors.layout import run_ids, write_secrets
from apps.engine.harness_copy import install_harness
from apps.engine.settings import EngineSettings
from apps.engine.spool import OUT, create_spools
from apps.engine.types import MIB, EnvironmentSpec, Limits, RunSpec

logger = logging.getLogger(__name__)

LABEL_PROBE = "clawpanel.probe"
_LONGEST_SECONDS = 30
_SCRIPT = """
import os, socket
try:
    socket.create_connection((os.environ["HOST"], int(os.environ["PORT"])), timeout=3).close()
    print("host open")
except OSError as error:
    print("host closed", error)
"""


def run_probe(api: APIClient, settings: EngineSettings, builder: ImageBuilder, network: RunNetwork) -> tuple[str, ...]:
    """One sentence a fault."""
    name = f"claw-{settings.install}-probe-{os.getpid()}"
    run_dir = settings.home / "runs" / f"probe-{os.getpid()}"
    try:
        image = builder.environment(EnvironmentSpec(), lambda _: None)
        with _listener(network.gateway) as port:
            text = _run(api, settings, _spec(settings, run_dir, image, network.gateway, port), name)
    except EngineError as error:
        return (str(error),)
    finally:
        with suppress(APIError, EngineError):
            api.remove_container(name, force=True, v=True)
        shutil.rmtree(run_dir, ignore_errors=True)
        shutil.rmtree(settings.secrets_dir(name), ignore_errors=True)
    if not text.startswith("host "):
        return (
            f"A container and the panel do not see the same file under {settings.home}: "
            "panel and Docker Engine must share this folder at the same path.",
        )
    if port and text.startswith("host open"):
        return (f"A run can reach services of this host at {network.gateway}: the packet rules are not in force.",)
    return ()


@contextmanager
def _listener(gateway: str) -> Iterator[int]:
    """A port of this host on the bridge; 0 when we are not on the bridge's host and so cannot try."""
    with closing(socket.socket()) as server:
        try:
            server.bind((gateway, 0))
            server.listen()
        except OSError as error:
            logger.info("no socket on the runs' bridge, reach of the host is not probed: %s", error)
            yield 0
            return
        yield server.getsockname()[1]


def _spec(settings: EngineSettings, run_dir: Path, image: str, gateway: str, port: int) -> RunSpec:
    return RunSpec(
        install=settings.install,
        run_id=0,
        attempt=0,
        token=0,
        request_id="probe",
        spider="probe",
        command=("python3", "-c", _SCRIPT),
        code_dir=run_dir,
        run_dir=run_dir,
        environment=image,
        env={"HOST": gateway or "127.0.0.1", "PORT": str(port or 9)},
        limits=Limits(memory_bytes=128 * MIB, tmp_bytes=8 * MIB, output_bytes=MIB, pids=32),
    )


def _run(api: APIClient, settings: EngineSettings, spec: RunSpec, name: str) -> str:
    """What the probe wrote, as this process sees its file."""
    uid, gid = run_ids(settings)
    create_spools(spec.run_dir, uid, gid)
    secrets = settings.secrets_dir(name)
    write_secrets(secrets, {}, uid, gid)
    harness = install_harness(settings.home)
    config = profile.container_config(spec, settings, harness=harness, secrets=secrets, volumes=())
    # Not an attempt: it must not be found, adopted or swept as one.
    config["Labels"] = {LABEL_PROBE: settings.install}
    with translated():
        with suppress(NotFound):
            api.remove_container(name, force=True, v=True)
        ref = create_container(api, config, name)
        api.start(ref)
        deadline = time.monotonic() + _LONGEST_SECONDS
        while time.monotonic() < deadline:
            if api.inspect_container(ref)["State"]["Status"] == "exited":
                break
            time.sleep(0.1)
    return (spec.run_dir / OUT).read_text(errors="replace")
