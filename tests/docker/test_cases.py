"""Each misbehaving program of tests/cases runs through the whole product, in a real container, and ends rightly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.panel import Panel

pytestmark = [pytest.mark.docker, pytest.mark.timeout(420)]


class Cases:
    """Starts a program of the cases as a run of its own job."""

    def __init__(self, running: Panel) -> None:
        self.panel = running
        self.count = 0

    def start(self, program: str, *, spider: str = "case", limits: dict[str, Any] | None = None, **env: str) -> int:
        self.count += 1
        parameters = {"program": program} if spider == "case" else {}
        name = f"{spider} {program} {self.count} {time.monotonic_ns()}"
        return self.panel.run(self.panel.job(name, spider, limits=limits, env=env, **parameters))

    def ended(self, program: str, **options: Any) -> dict[str, Any]:
        return self.panel.wait(self.start(program, **options), 180)


@pytest.fixture
def cases(with_cases: Panel) -> Cases:
    return Cases(with_cases)


@pytest.mark.parametrize(("program", "code"), [("exit_137.py", 137), ("exit_143_self.py", 143)])
def test_an_exit_code_of_its_own_is_a_plain_failure(cases: Cases, program: str, code: int) -> None:
    run = cases.ended(program)
    assert (run["state"], run["exit_code"]) == ("failed", code)
    assert run["reason"] not in ("oom", "stopped_by_user")
    assert str(code) in run["message"]


def test_a_memory_hog_is_out_of_memory(cases: Cases) -> None:
    run = cases.ended("mem_main.py", limits={"memory_mb": 128})
    assert (run["state"], run["reason"]) == ("failed", "oom")
    assert "128 MB" in run["message"]


def test_a_child_out_of_memory_is_a_warning(cases: Cases) -> None:
    run = cases.ended("mem_child.py", limits={"memory_mb": 128})
    assert (run["state"], run["exit_code"], run["memory_warning"]) == ("succeeded", 0, True)


def test_a_fork_bomb_hits_its_limit_only(cases: Cases) -> None:
    run = cases.ended("fork_many.py")
    assert run["finished_at"]
    assert any(line.startswith("limit after") for line in cases.panel.lines(run["id"]))


def test_stdout_and_stderr_keep_their_order(cases: Cases) -> None:
    run = cases.ended("interleave.py")
    assert cases.panel.lines(run["id"]) == [f"{stream}{n}" for n in range(500) for stream in "oe"]


def test_a_line_of_ten_megabytes_is_cut_visibly(cases: Cases) -> None:
    run = cases.ended("one_huge_line.py", MB="10")
    long, short = cases.panel.lines(run["id"])
    assert len(long.encode()) < 66_000
    assert "cut" in long[-40:]
    assert short == "short line after"


def test_a_progress_bar_is_one_line(cases: Cases) -> None:
    run = cases.ended("no_newline.py")
    lines = cases.panel.lines(run["id"])
    assert len(lines) == 1
    assert lines[0].endswith("progress 300/300")


def test_no_credential_is_in_a_run(cases: Cases) -> None:
    run = cases.ended("env_dump.py")
    text = "\n".join(cases.panel.lines(run["id"]))
    secret = (cases.panel.home / "keys" / "secret_key").read_text().strip()
    for word in ("DATABASE_URL", "REDIS_URL", "postgres://", "redis", "SECRET_KEY", "DJANGO", "docker.sock", secret):
        assert word not in text


def test_nothing_a_hostile_spider_tries_first_works(cases: Cases) -> None:
    run = cases.ended("probe_escape.py")
    found = [line for line in cases.panel.lines(run["id"]) if not line.startswith("uid")]
    assert len(found) > 10
    assert [line for line in found if not line.startswith("no")] == []


def test_neither_host_nor_panel_can_be_reached(cases: Cases) -> None:
    client = docker.from_env()
    gateway = client.networks.get("clawpanel-runs").attrs["IPAM"]["Config"][0]["Gateway"]
    client.close()
    port = cases.panel.port
    run = cases.ended(
        "probe_network.py",
        TARGETS=f"panel {gateway} {port};ssh {gateway} 22;metadata 169.254.169.254 80;private 10.0.0.1 80;"
        f"docker {gateway} 2375;demo {gateway} {port + 1}",
    )
    found = dict(line.split(" ", 1) for line in cases.panel.lines(run["id"]))
    assert found.pop("demo") == "OPEN"
    assert [name for name, outcome in found.items() if outcome == "OPEN"] == []


def test_items_of_a_crashed_run_are_kept(cases: Cases) -> None:
    run = cases.ended("items_crash.py")
    assert (run["state"], run["items"]) == ("failed", 1000)
    assert [item["n"] for item in cases.panel.items(run["id"])] == list(range(1000))


def test_printed_frames_are_text(cases: Cases) -> None:
    run = cases.ended("forge_frames.py")
    assert (run["state"], run["exit_code"], run["items"]) == ("failed", 7, 0)


def test_a_detached_child_does_not_outlive_the_run(cases: Cases) -> None:
    run = cases.ended("daemon_child.py")
    assert run["state"] == "succeeded"
    lines = cases.panel.lines(run["id"])
    time.sleep(2)
    assert cases.panel.lines(run["id"]) == lines
    client = docker.from_env()
    left = client.containers.list(all=True, filters={"label": f"clawpanel.run={run['id']}"})
    names = [container.name for container in left if container.labels["clawpanel.install"] == install(cases.panel)]
    client.close()
    assert names == []


def install(running: Panel) -> str:
    return (running.home / "keys" / "install").read_text().strip()


def test_stop_ends_a_program_that_ignores_it(cases: Cases) -> None:
    run = cases.start("ignore_term.py", limits={"grace_seconds": 3})
    cases.panel.until(run, "running")
    wait_for_line(cases.panel, run, "still here")
    asked = time.monotonic()
    cases.panel.post(f"runs/{run}/stop/", {})
    ended = cases.panel.wait(run, 30)
    assert time.monotonic() - asked < 3 + 5
    assert (ended["state"], ended["reason"]) == ("canceled", "stopped_by_user")


def test_what_is_printed_after_stop_is_kept(cases: Cases) -> None:
    run = cases.start("term_then_flush.py")
    wait_for_line(cases.panel, run, "ready")
    cases.panel.post(f"runs/{run}/stop/", {})
    ended = cases.panel.wait(run, 30)
    assert ended["state"] == "canceled"
    flushed = [line for line in cases.panel.lines(run) if line.startswith("flush")]
    assert flushed == [f"flush {n}" for n in range(50)]


def wait_for_line(running: Panel, run: int, start: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not any(line.startswith(start) for line in running.lines(run)):
        assert time.monotonic() < deadline, f"run {run} never printed {start}"
        time.sleep(0.1)


def test_a_full_scratch_folder_fails_that_run_only(cases: Cases) -> None:
    run = cases.ended("disk_fill.py", DIR="/tmp", MB="1024")
    assert (run["state"], run["exit_code"]) == ("failed", 1)
    assert any(line.startswith("stopped after") for line in cases.panel.lines(run["id"]))
    assert cases.ended("tz_print.py")["state"] == "succeeded"


def test_a_silent_run_is_left_alone(cases: Cases) -> None:
    run = cases.ended("silent.py", S="15")
    assert run["state"] == "succeeded"
    assert cases.panel.lines(run["id"]) == ["done"]


def test_a_run_sees_utc(cases: Cases) -> None:
    run = cases.ended("tz_print.py")
    assert "('UTC', 'UTC')" in cases.panel.lines(run["id"])[0]


@pytest.mark.parametrize("name", ["xss.log", "traceback.log", "forged_frames.log"])
def test_a_text_log_is_kept_line_by_line(cases: Cases, name: str) -> None:
    run = cases.ended("cat_file.py", FILE=f"logs/{name}")
    expected = (Path(__file__).parents[1] / "cases" / "logs" / name).read_text().splitlines()
    assert cases.panel.lines(run["id"]) == expected


def test_odd_bytes_are_kept_readable(cases: Cases) -> None:
    run = cases.ended("cat_file.py", FILE="logs/odd_bytes.bin")
    lines = cases.panel.lines(run["id"])
    assert lines[0] == "plain"
    assert lines[-1] == "no newline at end"
    assert all("\0" not in line for line in lines)


def test_known_secrets_are_masked(cases: Cases) -> None:
    run = cases.ended("cat_file.py", FILE="logs/secrets.log")
    text = "\n".join(cases.panel.lines(run["id"]))
    for word in ("s3cr3t-proxy-pass", "cprun_0123", "pa55word", "abcdEXAMPLEKEY", "abc123", "hunter2"):
        assert word not in text
    assert "***" in text


def test_odd_records_cost_themselves_only(cases: Cases) -> None:
    run = cases.ended("copy_records.py", FILE="items/items_odd.jsonl")
    assert run["state"] == "succeeded"
    assert run["items"] > 0
    assert run["items_rejected"] > 0
    for item in cases.panel.items(run["id"]):
        assert "lone-surrogate" not in str(item)
    assert cases.panel.session.get(f"{cases.panel.url}/api/v1/runs/{run['id']}/items.csv", timeout=30).ok


def test_endless_output_is_ended_by_its_limit_or_a_stop(cases: Cases) -> None:
    run = cases.start("endless.py", limits={"timeout_seconds": 8, "grace_seconds": 1})
    ended = cases.panel.wait(run, 120)
    assert (ended["state"], ended["reason"]) in {("timed_out", "run_timeout"), ("failed", "output_limit")}
    assert "8 s" in ended["message"] or "output" in ended["message"]


@pytest.mark.parametrize(
    ("spider", "word"), [("broken-syntax", "SyntaxError"), ("broken-import", "nowhere_to_be_found")]
)
def test_a_spider_that_cannot_be_loaded_says_why(cases: Cases, spider: str, word: str) -> None:
    run = cases.ended("", spider=spider)
    assert run["state"] == "failed"
    assert any(word in line for line in cases.panel.lines(run["id"]))


def test_a_missing_requirement_is_named(cases: Cases) -> None:
    run = cases.ended("", spider="missing-requirement")
    assert (run["state"], run["reason"]) == ("failed", "image_build_failed")
    assert any("this-package-does-not-exist-anywhere" in line for line in cases.panel.lines(run["id"]))


def test_thirty_quick_failures_keep_code_and_line(cases: Cases, tmp_path: Path) -> None:
    job = cases.panel.job("quick", "slow", count=1, per_second=0, items_every=0, exit_code=3)
    runs = [cases.panel.run(job) for _ in range(30)]
    for run in runs:
        ended = cases.panel.wait(run, 180)
        assert (ended["state"], ended["exit_code"]) == ("failed", 3)
        assert sum(line.startswith("line 1") for line in cases.panel.lines(run)) == 1
