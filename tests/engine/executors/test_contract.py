"""What every executor promises, tried on real containers and real processes with the misbehaving cases."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from apps.engine.errors import CreateFailed
from apps.engine.outcomes import decide
from apps.engine.spool import LOG_LINE_BYTES, OUT, read_window, spool_size
from apps.engine.types import MIB, Phase
from tests.engine.executors.conftest import SMALL, Driver


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


def test_memory_of_the_main_process_ends_as_out_of_memory(driver: Driver) -> None:
    outcome = decide(driver.wait(driver.case("mem_main.py", {"MB": "2048"}), 30))
    assert (outcome.state, outcome.reason) == ("failed", "oom")


def test_memory_of_a_child_is_a_warning(driver: Driver) -> None:
    handle = driver.case("mem_child.py", {"MB": "2048"})
    outcome = decide(driver.wait(handle, 30))
    assert (outcome.state, outcome.memory_warning) == ("succeeded", True)
    assert "child rc -9" in driver.out(handle)


def test_a_command_that_ignores_sigterm_is_killed_and_counts_as_stopped(driver: Driver) -> None:
    handle = driver.case("ignore_term.py")
    driver.until_printed(handle, "still here 0")
    driver.executor.terminate(handle)
    time.sleep(0.5)
    assert driver.executor.inspect(handle).phase is Phase.RUNNING
    driver.executor.kill(handle)
    outcome = decide(driver.wait(handle, 5), asked="user", killed_after_grace=True)
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
    assert driver.wait(handle, 8).exit_code == (143 if how == "terminate" else 137)


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


def test_nothing_is_left_of_a_child_that_wants_to_outlive_the_run(driver: Driver) -> None:
    handle = driver.case("daemon_child.py")
    assert driver.wait(handle, 12).exit_code == 0
    text = driver.out(handle)
    assert text.startswith("main done")
    time.sleep(1.3)
    assert driver.out(handle) == text
    assert not _processes_with("daemon_child.py")


def _processes_with(word: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "cmdline").read_text(errors="replace")
            except OSError:
                continue
            if word in line and "pytest" not in line:
                found.append(line)
    return found


def test_a_fork_bomb_meets_its_limit_and_leaves_nothing(driver: Driver) -> None:
    handle = driver.case("fork_many.py", {"N": "2000"}, limits=replace(SMALL, pids=40))
    driver.until_printed(handle, "limit after", 15)
    assert driver.wait(handle, 30).exit_code in (0, 137)
    assert "no limit hit" not in driver.out(handle)
    driver.executor.remove(handle)
    assert not _processes_with("fork_many.py")


def test_endless_output_is_stopped_by_the_kernel(driver: Driver) -> None:
    limit = MIB
    handle = driver.script(
        "while True: print('x' * 1000)", limits=replace(SMALL, output_bytes=limit), env={"PYTHONUNBUFFERED": ""}
    )
    seen = driver.wait(handle)
    size = spool_size(handle.run_dir / OUT)
    assert size <= limit
    outcome = decide(seen, output_full=size >= limit)
    assert (outcome.state, outcome.reason) == ("failed", "output_limit")


def test_a_line_of_10_mb_is_one_cut_line(driver: Driver) -> None:
    handle = driver.case("one_huge_line.py", {"MB": "10"})
    assert driver.wait(handle).exit_code == 0
    lines, offset, cut = [], 0, False
    while True:
        window = read_window(handle.run_dir / OUT, offset, 256 * 1024, cut=cut, final=True)
        lines += window.data.split(b"\n")[:-1]
        offset, cut = window.next_offset, window.cut
        if window.at_end:
            break
    assert [len(line) > LOG_LINE_BYTES for line in lines] == [True, False]
    assert lines[1] == b"short line after"


def test_order_of_the_two_streams_is_kept(driver: Driver) -> None:
    handle = driver.case("interleave.py")
    driver.wait(handle)
    expected = [line for number in range(500) for line in (f"o{number}", f"e{number}")]
    assert driver.out(handle).splitlines() == expected


def test_bytes_reach_the_spool_as_they_are(driver: Driver) -> None:
    handle = driver.script("import os\nos.write(1, bytes(range(256)) + b'\\r\\nno newline at end')")
    driver.wait(handle)
    assert (handle.run_dir / OUT).read_bytes() == bytes(range(256)) + b"\r\nno newline at end"


def test_forged_frames_stay_text_and_the_exit_code_decides(driver: Driver) -> None:
    handle = driver.case("forge_frames.py")
    assert driver.wait(handle).exit_code == 7
    assert driver.records(handle) == ""


def test_records_and_parameters_and_secrets_arrive(driver: Driver) -> None:
    script = """
import json, os
params = json.loads(os.environ["CLAW_PARAMS"])
secret = open(os.path.join(os.environ["CLAW_SECRETS"], "token")).read()
with open(os.environ["CLAW_RECORDS"], "a") as records:
    records.write(json.dumps({"params": params, "secret": len(secret)}) + "\\n")
open(os.path.join(os.environ["CLAW_OUTPUT"], "report.txt"), "w").write("x")
print(os.environ["CLAW_RUN"], os.environ["CLAW_ATTEMPT"], os.environ["OWN"], os.environ["TZ"], flush=True)
"""
    handle = driver.script(
        script, params={"q": "中文 \" '"}, secrets={"token": "geheim"}, env={"OWN": "mine", "CLAW_RUN": "forged"}
    )
    assert driver.wait(handle).exit_code == 0, driver.out(handle)
    assert driver.out(handle) == f"{handle.run_id} 1 mine UTC\n"
    assert driver.records(handle) == '{"params": {"q": "\\u4e2d\\u6587 \\" \'"}, "secret": 6}\n'
    folder = driver.settings.secrets_dir(handle.name)
    assert folder.exists()
    driver.executor.remove(handle)
    assert not folder.exists()


def test_parameters_too_large_for_a_program_are_refused_with_a_sentence(driver: Driver) -> None:
    with pytest.raises(CreateFailed, match="parameters are too large"):
        driver.executor.create(driver.spec(("python3", "-c", "pass"), params={"big": "x" * 10_000_000}))


@pytest.mark.parametrize("name", ["../up", "", ".", "a/b", "nul\0"])
def test_a_secret_cannot_name_another_file(driver: Driver, name: str) -> None:
    spec = driver.spec(("python3", "-c", "pass"), secrets={name: "x"})
    with pytest.raises(CreateFailed):
        driver.executor.create(spec)
    assert not driver.settings.secrets_dir(spec.name).exists()


def test_missing_code_is_refused_with_a_sentence(driver: Driver) -> None:
    with pytest.raises(CreateFailed, match="code is not at"):
        driver.executor.create(driver.spec(("python3", "-c", "pass"), code_dir=driver.code / "gone"))


def test_no_credential_of_the_panel_is_visible(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://panel:pa55word@db.test/panel")
    monkeypatch.setenv("REDIS_URL", "redis://:pa55word@redis.test/0")
    monkeypatch.setenv("CLAWPANEL_SECRET_KEY", "pa55word")
    handle = driver.case("env_dump.py", secrets={"token": "geheim"})
    assert driver.wait(handle).exit_code == 0
    text = driver.out(handle)
    assert "CLAW_RUN=" in text
    for word in ("pa55word", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "geheim"):
        assert word not in text


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
    watcher = threading.Thread(target=driver.executor.watch, args=(woken.set, stop))
    watcher.start()
    try:
        assert woken.wait(5)  # once at the start
        handle = driver.script("import time; time.sleep(0.5)")
        time.sleep(0.3)
        woken.clear()
        assert woken.wait(5)
        driver.wait(handle)
    finally:
        stop.set()
        watcher.join(10)
    assert not watcher.is_alive()


def test_a_run_that_is_stopped_while_it_starts_ends(driver: Driver) -> None:
    handle = driver.script("import time; time.sleep(60)")
    driver.executor.terminate(handle)
    assert driver.wait(handle, 8).exit_code in (143, 137, 128 + signal.SIGTERM)


def test_the_clock_of_a_spider_is_utc(driver: Driver) -> None:
    handle = driver.case("tz_print.py")
    driver.wait(handle)
    assert driver.out(handle).startswith("('UTC', 'UTC')")
