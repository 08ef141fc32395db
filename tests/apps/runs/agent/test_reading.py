"""What a spider writes, and what becomes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apps.core.crypto import encrypt
from apps.runs.models import LogChunk, Run
from apps.runs.store import unpack_rows
from apps.spiders.models import Secret
from tests.apps.runs.agent.rig import Rig, items, lines

CASES = Path(__file__).parents[3] / "cases"


def levels(run: Run) -> list[int]:
    chunks = LogChunk.objects.filter(run_id=run.pk).order_by("first_line")
    return [row[2] for chunk in chunks for row in unpack_rows(chunk.content)]


def test_every_verb_finds_its_place(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.emit({"n": 1})
    attempt.write_record(b'{"n": 2}\n')
    attempt.emit({"message": "from a record", "level": "ERROR"}, "log")
    attempt.emit({"message": "two\nlines", "level": 30}, "log")
    attempt.emit({"url": "https://example.test/"}, "request")
    attempt.emit({"pages": 3}, "stat")
    attempt.emit({"errors": 1}, "stat")
    attempt.emit({"done": 5, "total": 10}, "progress")
    attempt.emit({"file": "out.csv"}, "output")
    attempt.emit({"reason": "finished", "stats": {"pages": 4}}, "finish")
    rig.tail()
    run.refresh_from_db()
    assert items(run) == [{"n": 1}, {"n": 2}]
    assert lines(run) == ["from a record", "two", "lines"]
    assert levels(run) == [40, 30, 30]
    assert (run.requests, run.progress, run.output) == (1, {"done": 5, "total": 10}, {"file": "out.csv"})
    assert run.stats == {"pages": 4, "errors": 1, "finish_reason": "finished"}


def test_what_stdout_says_is_never_a_record(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.write_out((CASES / "logs" / "forged_frames.log").read_bytes())
    rig.tail()
    run.refresh_from_db()
    assert (run.items, run.requests, run.stats) == (0, 0, {})
    assert run.lines > 0


def test_one_nul_among_500_items_costs_one_item(rig: Rig) -> None:
    run, attempt = rig.running()
    good = [{"n": number} for number in range(500)]
    for item in good[:250]:
        attempt.emit(item)
    attempt.write_record(b'{"t": "a\\u0000b"}\n')
    for item in good[250:]:
        attempt.emit(item)
    attempt.exit(0)
    rig.finish()
    run.refresh_from_db()
    assert items(run) == good
    assert (run.state, run.items_rejected) == ("succeeded", 1)
    assert lines(run) == ["Rejected record 1: The record holds a NUL character (\\u0000), which cannot be stored."]


def test_only_the_first_rejects_are_spelled_out(rig: Rig) -> None:
    run, attempt = rig.running()
    for _ in range(3):
        attempt.write_record(b"no json\n" * 20)
        rig.tail()
    run.refresh_from_db()
    assert run.items_rejected == 60
    assert run.lines == 21
    assert lines(run)[-1] == "Further rejected records are only counted."


@pytest.mark.parametrize("name", ["items_odd.jsonl", "items_hostile.jsonl"])
def test_odd_items_never_stop_a_run(rig: Rig, name: str) -> None:
    run, attempt = rig.running()
    attempt.write_record((CASES / "items" / name).read_bytes() + b"\n")
    attempt.emit({"the": "end"})
    attempt.exit(0)
    rig.finish()
    run.refresh_from_db()
    assert run.state == "succeeded"
    assert items(run)[-1] == {"the": "end"}
    assert run.items + run.items_rejected > 10


@pytest.mark.parametrize("raw", [b'{"p": 1e131071}', b'{"p": ' + b"1" * 5000 + b"}", b'{"p": 1e400}'])
def test_numbers_that_would_poison_a_page_are_refused(rig: Rig, raw: bytes) -> None:
    run, attempt = rig.running()
    attempt.write_record(raw + b"\n")
    attempt.emit({"fine": 1})
    rig.tail()
    run.refresh_from_db()
    assert (items(run), run.items_rejected) == ([{"fine": 1}], 1)


def test_a_secret_is_hidden_in_log_items_and_output(rig: Rig) -> None:
    order = rig.order()
    secret = Secret.objects.create(
        project=order.project, label="password", ciphertext=encrypt("hunter2-hunter2"), created_at=datetime.now(UTC)
    )
    run, attempt = rig.running(version=order.version, project=order.project, secrets={"password": secret.pk})
    assert attempt.spec.secrets == {"password": "hunter2-hunter2"}
    attempt.print("logging in with hunter2-hunter2")
    attempt.write_out(b"half a line with hunter2-hunter2")
    attempt.emit({"echo": "hunter2-hunter2"})
    attempt.emit({"echo": "hunter2-hunter2"}, "output")
    attempt.exit(0)
    rig.finish()
    run.refresh_from_db()
    assert lines(run) == ["logging in with ***", "half a line with ***"]
    assert items(run) == [{"echo": "***"}]
    assert run.output == {"echo": "***"}
    assert "hunter2" not in json.dumps(run.spec)


def test_the_build_is_shown_in_the_runs_log(rig: Rig) -> None:
    order = rig.order()
    order.version.requirements = "requests==2.32.0"
    order.version.save()
    run, attempt = rig.running(version=order.version, project=order.project)
    attempt.print("the spider")
    rig.tail()
    assert lines(run) == ["The requirements are installed.", "the spider"]


def test_a_traceback_stays_red_across_windows(rig: Rig) -> None:
    run, attempt = rig.running()
    for line in (CASES / "logs" / "traceback.log").read_bytes().splitlines(keepends=True):
        attempt.write_out(line)
        rig.tail()
    in_pieces = levels(run)
    other, second = rig.running()
    second.write_out((CASES / "logs" / "traceback.log").read_bytes())
    rig.tail()
    assert in_pieces == levels(other)
    assert 40 in in_pieces


def test_bytes_that_are_no_text_are_shown_and_kept_in_line(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.write_out((CASES / "logs" / "odd_bytes.bin").read_bytes() + b"\nlast\n")
    rig.tail(3)
    assert lines(run)[-1] == "last"


def test_a_line_of_ten_megabytes_is_one_cut_line(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.write_out(b"x" * 10_000_000 + b"\nshort\n")
    attempt.exit(0)
    rig.finish()
    stored = lines(run)
    assert len(stored) == 2
    assert stored[0].endswith("[line cut at 64 KiB]")
    assert stored[1] == "short"


def test_files_cut_from_outside_are_reported_and_the_run_goes_on(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.print("one", "two")
    rig.tail()
    (attempt.spec.run_dir / "out").write_bytes(b"")
    rig.tail()
    attempt.print("three")
    rig.tail()
    run.refresh_from_db()
    assert run.log_damaged
    assert lines(run) == ["one", "two", "The run's files were cut short from outside: a part is missing here.", "three"]


def test_stats_and_output_are_bounded(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.emit({"a": "x" * 70_000}, "output")
    attempt.emit({f"k{number}": number for number in range(600)}, "stat")
    attempt.emit({"fine": 1}, "stat")
    rig.tail()
    run.refresh_from_db()
    assert (run.output, run.stats, run.items_rejected) == ({}, {"fine": 1}, 2)


def test_a_spider_that_fills_its_files_to_the_brim_is_over_the_output_limit(rig: Rig) -> None:
    run, attempt = rig.running()
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    attempt.print("x" * 100)
    attempt.exit(153)
    rig.finish()
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "output_limit")


def test_a_run_whose_files_cannot_be_read_fails_alone(rig: Rig) -> None:
    run, attempt = rig.running()
    other, second = rig.running()
    (attempt.spec.run_dir / "out").unlink()
    (attempt.spec.run_dir / "out").symlink_to("/etc/passwd")
    second.print("stored")
    rig.tail(3)
    assert lines(other) == ["stored"]
    attempt.exit(0)
    rig.finish()
    run.refresh_from_db()
    assert (run.state, run.reason, run.lines) == ("failed", "storage_error", 0)
