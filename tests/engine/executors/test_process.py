"""What the process executor promises besides: a real memory limit, no rights, an exit code that is never lost."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from apps.engine.errors import CreateFailed
from apps.engine.executors.process import ProcessExecutor, proc
from apps.engine.executors.process.order import first_closed
from apps.engine.types import MIB, Phase
from tests.engine.executors.conftest import SMALL, Driver

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a run another user: sudo deploy/test")


def test_memory_of_many_children_together_is_limited(process: Driver) -> None:
    script = """
import os, time
for i in range(6):
    if os.fork() == 0:
        held = bytearray(60 << 20)
        time.sleep(5)
        os._exit(0)
print("codes", sorted(os.waitpid(-1, 0)[1] for i in range(6)), flush=True)
"""
    handle = process.script(script, limits=replace(SMALL, memory_bytes=256 * MIB))
    seen = process.wait(handle)
    assert (seen.exit_code, seen.oom_killed) == (0, True)
    assert "9]" in process.out(handle)


def test_pages_shared_after_a_fork_are_counted_once(process: Driver) -> None:
    script = """
import os, time
held = bytearray(80 << 20)
for i in range(6):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
print("codes", sorted(os.waitpid(-1, 0)[1] for i in range(6)), flush=True)
"""
    handle = process.script(script)
    seen = process.wait(handle)
    assert (seen.exit_code, seen.oom_killed) == (0, False)
    assert process.out(handle) == "codes [0, 0, 0, 0, 0, 0]\n"


@as_root
def test_a_spider_can_neither_signal_the_panel_nor_read_its_files(process: Driver, engine_home: Path) -> None:
    secret = engine_home / "panel.key"
    secret.write_text("key")
    secret.chmod(0o600)
    script = f"""
import os
def tried(call, *arguments):
    try:
        call(*arguments)
    except PermissionError:
        return "no"
    return "YES"
print(os.getuid(), os.getgroups())
print(tried(os.kill, {os.getpid()}, 0), tried(open, {str(secret)!r}), tried(os.setuid, 0), tried(open, "x", "w"))
print(tried(open, f"/proc/{os.getpid()}/environ"), tried(os.listdir, os.path.join(os.getcwd(), "../runs/1-1/shim")))
"""
    (engine_home / "runs" / "1-1" / "shim").mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = process.script(script)
    assert process.wait(handle).exit_code == 0, process.out(handle)
    assert process.out(handle).splitlines() == [f"{process.settings.run_uid} []", "no no no no", "no no"]
    assert stat.S_IMODE((handle.run_dir / "shim").stat().st_mode) == 0o700


def test_limits_of_the_kernel_are_set(process: Driver) -> None:
    script = """
import resource
for name in ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CPU"):
    print(name, *resource.getrlimit(getattr(resource, name)))
"""
    handle = process.script(script, limits=replace(SMALL, open_files=128, run_seconds=100))
    process.wait(handle)
    assert process.out(handle).splitlines() == [
        "RLIMIT_CORE 0 0",
        f"RLIMIT_FSIZE {SMALL.output_bytes} {SMALL.output_bytes}",
        "RLIMIT_NOFILE 128 128",
        "RLIMIT_CPU 160 160",
    ]


def test_no_descriptor_or_variable_of_ours_is_handed_on(process: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_OF_OURS", "x")
    script = "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1], 'LD_PRELOAD_OF_OURS' in os.environ)"
    handle = process.script(script)
    process.wait(handle)
    assert process.out(handle) == "['0', '1', '2'] False\n"


def test_a_killed_shim_takes_the_run_with_it_and_is_reported_missing(process: Driver) -> None:
    handle = process.script(
        "import os, time\nos.fork()\nprint('up', flush=True)\nwhile True: time.sleep(0.05); print('x', flush=True)"
    )
    process.until_printed(handle, "up")
    pid = json.loads((handle.run_dir / "shim" / "pid.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    process.until(lambda: process.executor.inspect(handle).phase is Phase.MISSING)
    process.until(lambda: not any(found.session == pid and found.state not in "ZX" for found in proc.all_stats()))


def test_a_pid_that_was_given_to_another_process_is_not_the_run(process: Driver) -> None:
    handle = process.script("import time; time.sleep(30)")
    path = handle.run_dir / "shim" / "pid.json"
    pid = json.loads(path.read_text())
    process.executor.kill(handle)
    process.wait(handle)
    (handle.run_dir / "shim" / "end.json").unlink()
    path.write_text(json.dumps(pid | {"pid": os.getpid()}))  # as after a restart of the machine
    assert process.executor.inspect(handle).phase is Phase.MISSING
    process.executor.kill(handle)
    process.executor.remove(handle)


@pytest.mark.parametrize("change", [{"space": "another boot"}, {"started": 1}])
def test_a_session_that_was_given_to_strangers_is_left_alone(process: Driver, change: dict[str, object]) -> None:
    handle = process.script("import time; time.sleep(30)")
    path = handle.run_dir / "shim" / "pid.json"
    pid = json.loads(path.read_text())
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as stranger:
        started = proc.read_stat(stranger.pid)
        assert started is not None
        process.executor.kill(handle)
        process.wait(handle)
        (handle.run_dir / "shim" / "end.json").unlink()
        leader = {"pid": stranger.pid, "started": started.started + 1}
        path.write_text(json.dumps(pid | leader | change))
        assert process.executor.inspect(handle).phase is Phase.MISSING
        assert stranger.poll() is None
        stranger.kill()
    process.executor.remove(handle)


def test_an_end_that_cannot_be_written_at_once_is_not_lost(process: Driver) -> None:
    handle = process.script("import time; time.sleep(0.5); raise SystemExit(3)")
    in_the_way = handle.run_dir / "shim" / "end.json.new"
    in_the_way.mkdir()
    time.sleep(1.2)
    assert process.executor.inspect(handle).phase is Phase.RUNNING
    in_the_way.rmdir()
    assert process.wait(handle).exit_code == 3


def test_the_work_folder_is_the_runs_own_and_goes_with_it(process: Driver) -> None:
    script = "import os, tempfile; print(os.path.expanduser('~'), tempfile.gettempdir(), os.getcwd())"
    handle = process.script(script)
    process.wait(handle)
    work = handle.run_dir / "work"
    assert process.out(handle).split() == [str(work), str(work / "tmp"), str(process.code)]
    process.executor.remove(handle)
    assert not work.exists()
    assert (handle.run_dir / "out").exists()


def test_python3_of_a_shell_command_is_the_environments(process: Driver) -> None:
    handle = process.begin(process.spec(("sh", "-c", "command -v python3")))
    process.wait(handle)
    assert Path(process.out(handle).strip()).parent == Path(process.environment).parent


def test_the_operator_is_told_that_runs_are_not_isolated(process: Driver) -> None:
    health = process.executor.health()
    assert health.ok
    assert "not isolated" in health.warnings[0]


@as_root
def test_a_home_that_others_may_not_enter_means_no_change_of_user(process: Driver, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    executor = ProcessExecutor(replace(process.settings, home=closed / "home"))
    assert any("Spiders run as root" in warning for warning in executor.health().warnings)
    assert first_closed(Path("/usr/bin")) is None


def test_code_that_the_other_user_cannot_reach_is_refused(process: Driver, engine_home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a run another user: sudo deploy/test")
    closed = engine_home / "closed"
    closed.mkdir(mode=0o700, exist_ok=True)
    with pytest.raises(CreateFailed, match="may not enter"):
        process.executor.create(process.spec(("python3", "-c", "pass"), code_dir=closed))


def test_a_stop_at_any_moment_of_the_start_reaches_the_command(process: Driver) -> None:
    """Also between fork and exec, where a handler of the shim's would be the one to get it."""
    codes = set()
    for number in range(60):
        handle = process.script("import time; time.sleep(20)")
        time.sleep(number % 20 * 0.002)
        process.executor.terminate(handle)
        codes.add(process.wait(handle).exit_code)
        process.executor.remove(handle)
    assert codes == {128 + signal.SIGTERM}
