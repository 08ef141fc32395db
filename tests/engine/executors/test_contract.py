"""What every executor promises of an attempt's life, tried on real containers and real processes."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from apps.engine.outcomes import decide
from apps.engine.spool import OUT, spool_size
from apps.engine.types import MIB, Phase
from tests.engine.executors.conftest import Driver


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("pass", 0),
        ("raise SystemExit(1)", 1),
        ("raise SystemExit(3)", 3),
        ("import os; os.abort()", 134),
        ("import ctypes; ctypes.string_at(0)", 139),
    ],
)
def test_the_exit_code_is_the_commands_own(driver: Driver, script: str, code: int) -> None:
    seen = driver.wait(driver.script(script))
    assert (seen.phase, seen.exit_code, seen.oom_killed) == (Phase.EXITED, code, False)
    assert seen.started_at is not None
    assert seen.finished_at is not None
    assert seen.started_at <= seen.finished_at


def test_137_and_143_by_its_own_hand_are_plain_failures(driver: Driver) -> None:
    killed, ended = driver.case("exit_137.py"), driver.case("exit_143_self.py")
    outcome = decide(driver.wait(killed))
    assert (outcome.state, outcome.reason, outcome.detail["exit_code"]) == ("failed", "killed", 137)
    outcome = decide(driver.wait(ended))
    assert (outcome.state, outcome.reason, outcome.detail["exit_code"]) == ("failed", "exit_nonzero", 143)


def test_a_syntax_error_and_a_missing_import_fail_with_a_traceback(driver: Driver) -> None:
    handles = [driver.script("def"), driver.script("import no_such_package")]
    assert [driver.wait(handle).exit_code for handle in handles] == [1, 1]
    assert "SyntaxError" in driver.out(handles[0])
    assert "No module named 'no_such_package'" in driver.out(handles[1])


def test_a_command_that_is_not_there_is_code_127_and_said_in_the_log(driver: Driver) -> None:
    handle = driver.begin(driver.spec(("no-such-program", "x")))
    assert driver.wait(handle).exit_code == 127
    assert "not found" in driver.out(handle)


def test_a_command_that_ignores_sigterm_is_killed_and_counts_as_stopped(driver: Driver) -> None:
    handle = driver.case("ignore_term.py")
    driver.until_printed(handle, "still here 0")
    driver.executor.terminate(handle)
    time.sleep(0.5)
    assert driver.executor.inspect(handle).phase is Phase.RUNNING
    driver.executor.kill(handle)
    outcome = decide(driver.wait(handle), asked="user", killed_after_grace=True)
    assert (outcome.state, outcome.reason) == ("canceled", "stopped_by_user")


def test_what_is_printed_on_sigterm_is_in_the_log(driver: Driver) -> None:
    handle = driver.case("term_then_flush.py")
    driver.until_printed(handle, "ready")
    driver.executor.terminate(handle)
    outcome = decide(driver.wait(handle), asked="user")
    assert outcome.state == "canceled"
    assert driver.out(handle).splitlines() == ["ready", *(f"flush {number}" for number in range(50))]


def test_a_paused_attempt_stands_still_and_goes_on(driver: Driver) -> None:
    handle = driver.script("import time\nfor i in range(1000): print(i, flush=True); time.sleep(0.02)")
    driver.until_printed(handle, "3\n")
    driver.executor.pause(handle)
    driver.executor.pause(handle)
    assert driver.executor.inspect(handle).phase is Phase.PAUSED
    time.sleep(0.1)
    size = spool_size(handle.run_dir / OUT)
    time.sleep(0.3)
    assert spool_size(handle.run_dir / OUT) == size
    driver.executor.resume(handle)
    driver.executor.resume(handle)
    assert driver.executor.inspect(handle).phase is Phase.RUNNING
    driver.until(lambda: spool_size(handle.run_dir / OUT) > size)


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_a_paused_attempt_can_be_stopped(driver: Driver, how: str) -> None:
    handle = driver.script("import time; print('up', flush=True); time.sleep(60)")
    driver.until_printed(handle, "up")
    driver.executor.pause(handle)
    getattr(driver.executor, how)(handle)
    assert driver.wait(handle).exit_code == (143 if how == "terminate" else 137)


def test_a_later_worker_adopts_and_reads_the_exit_code(driver: Driver) -> None:
    spec = driver.spec(("python3", "-c", "import time; print('up', flush=True); time.sleep(0.7); raise SystemExit(3)"))
    handle = driver.begin(spec)
    driver.until_printed(handle, "up")
    later = driver.another()
    assert later.find(spec.install, spec.run_id, spec.attempt, spec.run_dir) == handle
    assert later.create(spec) == handle
    assert handle in later.list(spec.install)
    assert later.inspect(handle).phase is Phase.RUNNING
    driver.wait(handle)
    assert later.inspect(handle).exit_code == 3


def test_create_and_start_may_be_repeated_and_run_it_once(driver: Driver) -> None:
    spec = driver.spec(("python3", "-c", "print('once', flush=True)"))
    handle = driver.begin(spec)
    for _ in range(3):
        assert driver.executor.create(spec) == handle
        driver.executor.start(handle)
    driver.wait(handle)
    driver.executor.start(handle)  # an exited one must not run again
    time.sleep(0.3)
    assert driver.out(handle) == "once\n"


def test_two_workers_that_start_at_once_run_it_once(driver: Driver) -> None:
    spec = driver.spec(("python3", "-c", "print('once', flush=True)"))
    handle = driver.executor.create(spec)
    driver.handles.append(handle)
    workers = [threading.Thread(target=driver.another().start, args=(handle,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    driver.wait(handle)
    assert driver.out(handle) == "once\n"


def test_an_attempt_is_created_until_it_is_started_and_missing_once_removed(driver: Driver) -> None:
    handle = driver.executor.create(driver.spec(("python3", "-c", "pass")))
    assert driver.executor.inspect(handle).phase is Phase.CREATED
    driver.executor.remove(handle)
    driver.executor.remove(handle)
    assert driver.executor.inspect(handle).phase is Phase.MISSING
    assert driver.executor.find(driver.settings.install, handle.run_id, 1, handle.run_dir) is None
    for call in ("terminate", "kill", "pause", "resume"):
        getattr(driver.executor, call)(handle)
    assert driver.executor.sample(handle) is None


def test_removing_a_running_attempt_ends_it(driver: Driver) -> None:
    handle = driver.script("import time\nwhile True: print('x', flush=True); time.sleep(0.01)")
    driver.until_printed(handle, "x")
    driver.executor.remove(handle)
    size = spool_size(handle.run_dir / OUT)
    time.sleep(0.3)
    assert spool_size(handle.run_dir / OUT) == size


def test_thirty_quick_exits_keep_code_and_line(driver: Driver) -> None:
    command = ("sh", "-c", "echo line; exit 3")
    handles = [driver.begin(driver.spec(command)) for _ in range(30)]
    seen = [driver.wait(handle) for handle in handles]
    assert [observation.exit_code for observation in seen] == [3] * 30
    assert [driver.out(handle) for handle in handles] == ["line\n"] * 30


def test_use_is_sampled_while_it_runs(driver: Driver) -> None:
    handle = driver.script("import time\nheld = bytearray(40 << 20)\nprint('up', flush=True)\nwhile True: pass")
    driver.until_printed(handle, "up")
    first = driver.executor.sample(handle)
    time.sleep(0.5)
    second = driver.executor.sample(handle)
    assert first is not None
    assert second is not None
    assert second.cpu_seconds > first.cpu_seconds
    assert 40 * MIB < second.memory_bytes < 256 * MIB
    assert second.memory_limit_bytes == 256 * MIB
    assert 1 <= second.pids < 20


def test_watch_wakes_when_an_attempt_ends(driver: Driver) -> None:
    woken, stop = threading.Event(), threading.Event()
    watcher = threading.Thread(target=driver.executor.watch, args=(lambda _name: woken.set(), stop))
    watcher.start()
    try:
        assert woken.wait(30)  # once at the start
        handle = driver.script("import time; time.sleep(0.5)")
        time.sleep(0.3)
        woken.clear()
        assert woken.wait(30)
        driver.wait(handle)
    finally:
        stop.set()
        watcher.join(10)
    assert not watcher.is_alive()


def test_a_run_that_is_stopped_while_it_starts_ends(driver: Driver) -> None:
    handle = driver.script("import time; time.sleep(60)")
    driver.executor.terminate(handle)
    assert driver.wait(handle).exit_code in (143, 137, 128 + signal.SIGTERM)
