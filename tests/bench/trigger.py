"""From the API call to the spider's first line, beside the same command started bare in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from apps.engine.docker_api import connect, create_container
from apps.engine.executors.docker.profile import container_config
from apps.engine.executors.layout import run_ids, write_secrets
from apps.engine.harness_copy import install_harness
from apps.engine.settings import EngineSettings
from apps.engine.spool import create_spools
from apps.engine.types import MIB, Limits, RunSpec
from tests.bench.figures import Figure, median_ms
from tests.panel import Panel

PARAMS = {"lines": 1, "per_second": 0, "line_bytes": 20, "items": 0, "item_bytes": 0}
POLL_SECONDS = 0.0005


def first_line(panel: Panel, runs: int = 20) -> Figure:
    """Median of `runs` pairs, one ours and one bare in turn; ours counts until the line is in the store."""
    bare = _bare_docker if panel.executor == "docker" else _bare_process
    job = panel.job("first line", "meter", **PARAMS)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(runs + 2):
        called = time.time()
        run = panel.wait(panel.run(job))
        line = next(
            row for row in panel.get(f"runs/{run['id']}/log/", after=0)["results"] if row["text"].startswith("line 0")
        )
        mine = datetime.fromisoformat(line["at"]).timestamp() - called
        other = bare(panel, number)
        if number >= 2:  # the first two warm caches on both sides
            ours.append(mine)
            theirs.append(other)
    above = median_ms(ours) - median_ms(theirs)
    value = f"{median_ms(ours):.0f} ms, bare {median_ms(theirs):.0f} ms: +{above:.0f} ms"
    return Figure(f"API call to first stored line ({panel.executor})", value, "+150 ms", above <= 150)


def code_folder(panel: Panel) -> Path:
    return next(folder for folder in (panel.home / "code").iterdir() if (folder / "meter.py").is_file())


def _wait_for_output(path: Path, started: float) -> float:
    while path.stat().st_size == 0:
        if time.perf_counter() - started > 30:
            raise RuntimeError("the bare run printed nothing")
        time.sleep(POLL_SECONDS)
    return time.perf_counter() - started


def _bare_docker(panel: Panel, number: int) -> float:
    """docker-py's create and start with the very same configuration, until the first byte is in the file."""
    settings = EngineSettings(install="bench", home=panel.home)
    api = connect("")
    image = api.images(name="clawpanel-runner")[0]["RepoTags"][0]
    spec = RunSpec(
        install="bench",
        run_id=10**9 + number,
        attempt=1,
        token=1,
        request_id="bench",
        spider="meter",
        command=("python3", "meter.py"),
        code_dir=code_folder(panel),
        run_dir=panel.home / "bare" / str(number),
        environment=image,
        params=PARAMS,
        limits=Limits(memory_bytes=256 * MIB),
    )
    create_spools(spec.run_dir, *run_ids(settings))
    secrets = settings.secrets_dir(spec.name)
    write_secrets(secrets, {}, *run_ids(settings))
    config = container_config(spec, settings, harness=install_harness(settings.home), secrets=secrets, volumes=())
    started = time.perf_counter()
    container = create_container(api, config, spec.name)
    try:
        api.start(container)
        return _wait_for_output(spec.run_dir / "out", started)
    finally:
        api.remove_container(container, force=True)


def _bare_process(panel: Panel, number: int) -> float:
    """The same program as a bare child with its output in a file."""
    with tempfile.TemporaryDirectory() as folder:
        out, records = Path(folder) / "out", Path(folder) / "records"
        records.touch()
        started = time.perf_counter()
        with out.open("wb") as file:
            child = subprocess.Popen(
                [sys.executable, "meter.py"],
                cwd=code_folder(panel),
                stdout=file,
                env={**os.environ, "CLAW_PARAMS": json.dumps(PARAMS), "CLAW_RECORDS": str(records)},
            )
        elapsed = _wait_for_output(out, started)
        child.wait()
        return elapsed
