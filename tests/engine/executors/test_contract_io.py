"""What every executor promises of limits and of what goes in and out, tried with the misbehaving cases."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from apps.engine.errors import CreateFailed
from apps.engine.outcomes import decide
from apps.engine.spool import LOG_LINE_BYTES, OUT, read_window, spool_size
from apps.engine.types import MIB
from tests.engine.executors.conftest import SMALL, Driver


def test_memory_of_the_main_process_ends_as_out_of_memory(driver: Driver) -> None:
    outcome = decide(driver.wait(driver.case("mem_main.py", {"MB": "2048"})))
    assert (outcome.state, outcome.reason) == ("failed", "oom")


def test_memory_of_a_child_is_a_warning(driver: Driver) -> None:
    handle = driver.case("mem_child.py", {"MB": "2048"})
    outcome = decide(driver.wait(handle))
    assert (outcome.state, outcome.memory_warning) == ("succeeded", True)
    assert "child rc -9" in driver.out(handle)


def test_nothing_is_left_of_a_child_that_wants_to_outlive_the_run(driver: Driver) -> None:
    handle = driver.case("daemon_child.py")
    assert driver.wait(handle).exit_code == 0
    text = driver.out(handle)
    assert "main done" in text.splitlines()
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
    driver.until_printed(handle, "limit after")
    assert driver.wait(handle).exit_code in (0, 137)
    assert "no limit hit" not in driver.out(handle)
    driver.executor.remove(handle)
    assert not _processes_with("fork_many.py")


def test_the_code_is_the_commands_own_though_its_children_leave_no_room_for_a_process(driver: Driver) -> None:
    bomb = """
import os, time
end, main = time.monotonic() + 8, os.getpid()
print("begun", flush=True)
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        if os.getpid() == main:
            print("full", flush=True)
            os._exit(7)
"""
    handle = driver.script(bomb, limits=replace(SMALL, pids=30))
    assert driver.wait(handle).exit_code == 7
    assert driver.out(handle).splitlines()[:2] == ["begun", "full"]


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
print(os.environ["CLAW_FAILED_RUN"], os.environ.get("CLAW_OTHER"), flush=True)
"""
    env = {"OWN": "mine", "CLAW_RUN": "forged", "CLAW_FAILED_RUN": "7", "CLAW_OTHER": "forged"}
    handle = driver.script(script, params={"q": "中文 \" '"}, secrets={"token": "geheim"}, env=env)
    assert driver.wait(handle).exit_code == 0, driver.out(handle)
    assert driver.out(handle) == f"{handle.run_id} 1 mine UTC\n7 None\n"
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


def test_the_clock_of_a_spider_is_utc(driver: Driver) -> None:
    handle = driver.case("tz_print.py")
    driver.wait(handle)
    assert driver.out(handle).startswith("('UTC', 'UTC')")
