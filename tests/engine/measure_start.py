"""Prints how long it takes from create to the spider's first line, through an executor and bare.

python -m tests.engine.measure_start [ROUNDS]
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from apps.engine.docker_api import connect, create_container
from apps.engine.executors.docker import DockerExecutor, profile
from apps.engine.executors.layout import run_ids, write_secrets
from apps.engine.executors.process import ProcessExecutor
from apps.engine.harness_copy import install_harness
from apps.engine.settings import EngineSettings
from apps.engine.spool import OUT, create_spools, spool_size
from apps.engine.types import EnvironmentSpec, Executor, RunSpec
from tests.engine.executors.conftest import has_docker, local_base

COMMAND = ("python3", "-c", "print('first line', flush=True); import time; time.sleep(30)")
PAUSE_SECONDS = 0.001


def measured(begin: Callable[[RunSpec], Callable[[], None]], spec: RunSpec) -> float:
    started = time.perf_counter()
    end = begin(spec)
    while not spool_size(spec.run_dir / OUT):
        time.sleep(PAUSE_SECONDS)
    taken = time.perf_counter() - started
    end()
    return taken


def through(executor: Executor) -> Callable[[RunSpec], Callable[[], None]]:
    def begin(spec: RunSpec) -> Callable[[], None]:
        handle = executor.create(spec)
        executor.start(handle)
        return lambda: executor.remove(handle)

    return begin


def bare_docker(settings: EngineSettings) -> Callable[[RunSpec], Callable[[], None]]:
    api = connect(settings.docker_url)
    harness = install_harness(settings.home)
    uid, gid = run_ids(settings)

    def begin(spec: RunSpec) -> Callable[[], None]:
        create_spools(spec.run_dir, uid, gid)
        secrets = settings.secrets_dir(spec.name)
        write_secrets(secrets, {}, uid, gid)
        config = profile.container_config(spec, settings, harness=harness, secrets=secrets, volumes=())
        ref = create_container(api, config, spec.name)
        api.start(ref)
        return lambda: api.remove_container(ref, force=True)

    return begin


def bare_process(spec: RunSpec) -> Callable[[], None]:
    spec.run_dir.mkdir(parents=True)
    out = (spec.run_dir / OUT).open("ab")
    process = subprocess.Popen([spec.environment, *COMMAND[1:]], stdout=out, stderr=out, cwd=spec.code_dir)

    def end() -> None:
        process.kill()
        process.wait()
        out.close()

    return end


def main(rounds: int) -> None:
    home = Path(tempfile.mkdtemp(prefix="claw-measure-", dir="/var/tmp"))
    home.chmod(0o755)
    code = home / "code"
    code.mkdir()
    settings = EngineSettings(install="measure", home=home, runner_base=local_base() if has_docker() else "")
    process = ProcessExecutor(settings)
    ways: dict[str, tuple[str, Callable[[RunSpec], Callable[[], None]]]] = {}
    executors: list[tuple[Executor, Callable[[RunSpec], Callable[[], None]]]] = [(process, bare_process)]
    if has_docker():
        executors.append((DockerExecutor(settings), bare_docker(settings)))
    for executor, bare in executors:
        executor.prepare()
        environment = executor.environment(EnvironmentSpec(), print)
        ways[f"{executor.kind} executor"] = (environment, through(executor))
        ways[f"{executor.kind} bare"] = (environment, bare)
    figures: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for number in range(rounds):
            for place, (name, (environment, begin)) in enumerate(ways.items()):
                run_id = number * 10 + place + 1
                spec = RunSpec(
                    install="measure", run_id=run_id, attempt=1, token=1, request_id="r", spider="s", command=COMMAND,
                    code_dir=code, run_dir=settings.run_dir(run_id, 1), environment=environment,
                )  # fmt: skip
                figures[name].append(measured(begin, spec) * 1000)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(settings.secrets_dir("x").parent, ignore_errors=True)
    medians = {name: round(statistics.median(values), 1) for name, values in figures.items()}
    sys.stdout.write(json.dumps({"rounds": rounds, "median_ms": medians}, indent=2) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
