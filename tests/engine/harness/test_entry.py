"""entry.sh under the shells that images have."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.engine.conftest import ENTRY, Start

CASES = Path(__file__).resolve().parents[2] / "cases" / "spiders"
SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("code", [0, 1, 3, 127, 137, 143])
def test_the_exit_code_is_the_commands_own(start: Start, shell: str, code: int) -> None:
    assert start("sh", "-c", f"exit {code}", shell=shell).finish().code == code


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143), ("SEGV", 139)])
def test_death_by_a_signal_is_told_as_128_plus_its_number(start: Start, shell: str, name: str, code: int) -> None:
    assert start("sh", "-c", f"kill -{name} $$", shell=shell).finish().code == code


def test_a_command_that_writes_nothing_ends_at_once(start: Start, shell: str) -> None:
    assert start("true", shell=shell).finish().seconds < 2


def test_stdout_and_stderr_keep_their_order(start: Start, shell: str, python: str) -> None:
    run = start(python, str(CASES / "interleave.py"), shell=shell).finish()
    assert run.log.splitlines() == [f"{stream}{n}" for n in range(500) for stream in "oe"]


def test_a_program_that_reopens_stderr_does_not_truncate_the_log(start: Start, shell: str) -> None:
    run = start("sh", "-c", "echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d", shell=shell).finish()
    assert run.log == "a\nb\nc\nd\n"


def test_bytes_pass_unchanged(start: Start, shell: str) -> None:
    run = start("sh", "-c", r"printf 'no newline \033[31m\t\r\377\000'", shell=shell)
    run.finish()
    assert run.out.read_bytes() == b"no newline \x1b[31m\t\r\xff\x00"


def test_the_log_is_appended_to(start: Start, shell: str) -> None:
    run = start("sh", "-c", "sleep 0.3; echo new", shell=shell)
    run.out.write_text("old\n")
    assert run.finish().log == "old\nnew\n"


def test_an_unknown_command_is_named_in_the_log(start: Start, shell: str) -> None:
    run = start("no-such-command", "x", shell=shell).finish()
    assert (run.code, run.log) == (127, "Command not found: no-such-command\n")


def test_a_command_without_the_right_to_run_is_named_in_the_log(start: Start, shell: str, tmp_path: Path) -> None:
    (tmp_path / "spider.sh").write_text("echo hi\n")
    run = start("./spider.sh", shell=shell).finish()
    assert run.code == 126
    assert "./spider.sh" in run.log


def test_no_command_at_all_is_said(start: Start, shell: str) -> None:
    run = start(shell=shell).finish()
    assert (run.code, run.log) == (127, "There is no command to run.\n")


def test_arguments_arrive_as_they_are(start: Start, shell: str) -> None:
    run = start("printf", "%s|", "a b", "*", "$HOME", "", "'", shell=shell).finish()
    assert run.log == "a b|*|$HOME||'|"


def test_term_reaches_the_command_and_its_last_lines_are_kept(start: Start, shell: str, python: str) -> None:
    run = start(python, str(CASES / "term_then_flush.py"), shell=shell)
    run.wait_for("ready\n")
    run.terminate()
    ended = run.finish()
    assert ended.code == 143  # it said 0, and has not done all of its work
    assert ended.log.splitlines() == ["ready", *(f"flush {n}" for n in range(50))]


def test_term_to_the_whole_group_loses_no_line(start: Start, shell: str, python: str) -> None:
    program = """
import os, signal, time
def bye(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"".join(b"flush %d\\n" % n for n in range(50)))
    os._exit(6)
signal.signal(signal.SIGTERM, bye)
os.write(1, b"ready\\n")
time.sleep(60)
"""
    run = start(python, "-c", program, shell=shell)
    run.wait_for("ready\n")
    os.killpg(run.process.pid, signal.SIGTERM)
    ended = run.finish()
    assert ended.log.splitlines() == ["ready", *(f"flush {n}" for n in range(50))]
    # bash 5.2 forgets the command's code when both are signalled at once; then it is that of the signal.
    assert ended.code in ((6, 143) if shell == "bash" else (6,))


def test_int_is_passed_on_as_term(start: Start, shell: str) -> None:
    script = "trap 'echo got TERM; exit 9' TERM; echo ready; sleep 60 >/dev/null 2>&1 & wait"
    run = start("sh", "-c", script, shell=shell)
    run.wait_for("ready\n")
    run.process.send_signal(signal.SIGINT)
    ended = run.finish()
    assert (ended.code, ended.log) == (9, "ready\ngot TERM\n")


def test_a_command_may_ignore_term(start: Start, shell: str) -> None:
    run = start("sh", "-c", "trap '' TERM; echo ready; sleep 1; echo done; exit 4", shell=shell)
    run.wait_for("ready\n")
    run.terminate()
    time.sleep(0.1)
    run.terminate()
    ended = run.finish()
    assert (ended.code, ended.log) == (4, "ready\ndone\n")


def test_children_left_behind_may_finish_for_a_moment(start: Start, shell: str) -> None:
    run = start("sh", "-c", "(sleep 0.7; echo late) & echo early", shell=shell).finish()
    assert run.log == "early\nlate\n"
    assert run.seconds < 2.5


def test_children_left_behind_cannot_hold_the_run(start: Start, shell: str) -> None:
    run = start("sh", "-c", "(sleep 60; echo never) & echo early; exit 5", shell=shell).finish()
    assert (run.code, run.log.splitlines()[0]) == (5, "early")
    assert "still writing after 3 s" in run.log
    assert 2.5 < run.seconds < 10


def test_nothing_of_the_wrapper_is_left(start: Start, shell: str) -> None:
    run = start("true", shell=shell)
    run.finish()
    with pytest.raises(ProcessLookupError):
        os.killpg(run.process.pid, 0)
    assert list((run.out.parent / "tmp").iterdir()) == []


def test_a_spool_that_is_not_there_is_an_error_at_once(tmp_path: Path, shell: str) -> None:
    environment = {**os.environ, "CLAW_OUT_FILE": str(tmp_path / "no" / "out"), "CLAW_TMP": str(tmp_path)}
    ended = subprocess.run([shell, str(ENTRY), "true"], env=environment, capture_output=True, timeout=10, check=False)
    assert ended.returncode == 125
    assert b"cannot append" in ended.stderr


def test_a_tmp_that_cannot_be_written_is_said_in_the_log(start: Start, shell: str) -> None:
    run = start("true", env={"CLAW_TMP": "/proc/no"}, shell=shell).finish()
    assert run.code == 125
    assert "Cannot make a FIFO in /proc/no." in run.log


@pytest.mark.parametrize("command", ["yes", "sh -c 'yes; exit 0'"])
def test_the_kernels_output_limit_ends_the_run_with_its_own_code(tmp_path: Path, shell: str, command: str) -> None:
    out = tmp_path / "out"
    environment = {**os.environ, "CLAW_OUT_FILE": str(out), "CLAW_TMP": str(tmp_path)}
    script = f"ulimit -f 100; exec {shell} {ENTRY} {command}"
    ended = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, timeout=30, check=False)
    assert ended.returncode == 153
    assert out.stat().st_size == 100 * 1024


def test_a_full_disk_is_no_success(tmp_path: Path, shell: str) -> None:
    environment = {**os.environ, "CLAW_OUT_FILE": "/dev/full", "CLAW_TMP": str(tmp_path)}
    ended = subprocess.run([shell, str(ENTRY), "sh", "-c", "echo a; exit 0"], env=environment, timeout=10, check=False)
    assert ended.returncode == 74


def test_entry_is_clean_for_shellcheck() -> None:
    shellcheck = shutil.which("shellcheck")
    if not shellcheck:
        pytest.skip("no shellcheck: apt-get install -y shellcheck")
    subprocess.run([shellcheck, str(ENTRY)], check=True)
