"""Exactly once: what was read is stored with its offsets or not at all."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from apps.core.actors import Actor
from apps.engine.records import Record, parse_record
from apps.runs import store
from apps.runs.ingest import Batch, Ending, Position, store_batches, write
from apps.runs.models import Attempt, Item, LogChunk, Run
from apps.runs.states import State
from tests.factories import AttemptFactory, RunFactory

ACTOR = Actor("agent", "node-a")
CASES = Path(__file__).parents[2] / "cases"


@pytest.fixture
def run(db: None) -> Run:
    made: Run = RunFactory(state=State.RUNNING, token=1, attempt=1)
    AttemptFactory(run=made, number=1)
    return made


def batch(run: Run, base: Position | None = None, token: int = 1, **given: Any) -> Batch:
    base = base or Position()
    known = {"out_offset": base.out_offset + 10, "records_offset": base.records_offset + 10}
    return Batch(
        run_id=run.pk,
        token=token,
        attempt=1,
        month=run.month,
        dataset_id=0,
        base=base,
        **{**known, **given},
    )


def put(*batches: Batch) -> list[Batch]:
    return store_batches(batches, now=datetime.now(UTC), actor=ACTOR)


def stored_lines(run: Run) -> list[tuple[int, str]]:
    chunks = LogChunk.objects.filter(run_id=run.pk).order_by("first_line")
    return [(row[0], row[3]) for chunk in chunks for row in store.unpack_rows(chunk.content)]


def stored_items(run: Run) -> list[tuple[int, Any]]:
    return list(Item.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", "data"))


def test_lines_items_counters_and_offsets_move_together(run: Run) -> None:
    first = batch(run, lines=[("a", 20), ("b", 40)], items=[b'{"n": 1}'], requests=2, stats={"x": 1})
    assert put(first) == [first]
    second = batch(run, first.position, lines=[("c", 30)], items=[b'{"n": 2}'], progress={"done": 1})
    put(second)
    run.refresh_from_db()
    attempt = Attempt.objects.get(run=run)
    assert stored_lines(run) == [(1, "a"), (2, "b"), (3, "c")]
    assert stored_items(run) == [(1, {"n": 1}), (2, {"n": 2})]
    assert (run.lines, run.warnings, run.errors, run.items, run.requests) == (3, 1, 1, 2, 2)
    assert (run.first_error_line, run.stats, run.progress) == (2, {"x": 1}, {"done": 1})
    assert (attempt.out_offset, attempt.records_offset, attempt.lines, attempt.items) == (20, 20, 3, 2)


def test_the_same_window_twice_is_stored_once(run: Run) -> None:
    assert put(batch(run, lines=[("a", 20)]))
    assert put(batch(run, lines=[("a", 20)])) == []
    assert stored_lines(run) == [(1, "a")]


def test_an_old_token_stores_nothing_and_does_not_hinder_the_others(run: Run) -> None:
    other = RunFactory(state=State.RUNNING, token=1, attempt=1)
    AttemptFactory(run=other, number=1)
    Run.objects.filter(pk=run.pk).update(token=2)
    mine = batch(other, lines=[("kept", 20)])
    assert put(batch(run, lines=[("lost", 20)]), mine) == [mine]
    assert stored_lines(run) == []
    assert stored_lines(other) == [(1, "kept")]


def test_the_end_comes_with_the_last_bytes_or_not_at_all(run: Run) -> None:
    ending = Ending(State.FAILED, "exit_nonzero", {"exit_code": 3}, exit_code=3)
    put(batch(run, lines=[("last", 20)], ending=ending))
    run.refresh_from_db()
    attempt = Attempt.objects.get(run=run)
    assert (run.state, run.reason, run.exit_code, run.lines) == ("failed", "exit_nonzero", 3, 1)
    assert (attempt.reason, attempt.exit_code) == ("exit_nonzero", 3)
    assert put(batch(run, Position(10, 10, lines=1), lines=[("after the end", 20)])) == []


def test_a_late_sweep_does_not_overwrite_success(run: Run, now: datetime) -> None:
    put(batch(run, ending=Ending(State.SUCCEEDED, "", {})))
    late = batch(run, Position(10, 10), ending=Ending(State.LOST, "node_lost", {}))
    assert put(late) == []
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED


def test_one_item_the_database_refuses_costs_one_item(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [b'{"n": %d}' % number for number in range(500)]
    items[123] = b'{"t": "a\\u0000b"}'  # past the gate, as a bug of ours might let it
    items[400] = b'{"broken": '
    other = RunFactory(state=State.RUNNING, token=1, attempt=1)
    AttemptFactory(run=other, number=1)
    assert len(put(batch(run, items=items), batch(other, lines=[("fine", 20)]))) == 2
    run.refresh_from_db()
    assert (run.items, run.items_rejected, run.warnings) == (498, 2, 2)
    assert [seq for seq, _data in stored_items(run)] == list(range(1, 499))
    assert stored_lines(other) == [(1, "fine")]


def test_a_step_that_cannot_be_stored_at_all_ends_its_run_and_no_other(run: Run) -> None:
    other = RunFactory(state=State.RUNNING, token=1, attempt=1)
    AttemptFactory(run=other, number=1)
    bad = batch(run, lines=[("fine", 20)], ending=Ending(State.FAILED, "create_failed", {"error": "a\0b"}))
    assert len(put(bad, batch(other, lines=[("fine", 20)]))) == 2
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "storage_error")
    assert stored_lines(other) == [(1, "fine")]


@pytest.mark.parametrize("name", ["items_odd.jsonl", "items_hostile.jsonl"])
def test_what_passes_the_gate_is_stored_and_can_be_read(run: Run, name: str) -> None:
    accepted = []
    for line in (CASES / "items" / name).read_bytes().split(b"\n"):
        record = parse_record(line)
        if isinstance(record, Record):
            accepted.append(record.raw)
    assert len(accepted) >= 4
    put(batch(run, items=accepted))
    run.refresh_from_db()
    assert (run.items, run.items_rejected) == (len(accepted), 0)
    for (_seq, data), raw in zip(stored_items(run), accepted, strict=True):
        assert data == json.loads(raw)


ODD_TEXTS = ["tab\there", "back\\slash", "\\N", "\\.", "cr\rhere", "\u2028", "中文", "emoji 👩‍🚀", '"quoted"', "\x7f"]


def test_every_character_comes_back_as_it_was(run: Run) -> None:
    put(
        batch(
            run,
            lines=[(text, 20) for text in ODD_TEXTS],
            items=[json.dumps({"t": text}).encode() for text in ODD_TEXTS]
            + [json.dumps({"t": text}, ensure_ascii=False).encode() for text in ODD_TEXTS]
            + [b'{"spaced":\t1,\r "x": 2}'],
        )
    )
    assert [text for _line, text in stored_lines(run)] == ODD_TEXTS
    assert [data for _seq, data in stored_items(run)] == [{"t": text} for text in ODD_TEXTS * 2] + [
        {"spaced": 1, "x": 2}
    ]


class Cut(OperationalError):
    """The connection broke."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(5))
def test_transactions_cut_at_random_points_lose_and_double_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Before, in the middle of, and after the commit; after each cut the position is asked of the database."""
    dice = random.Random(seed)  # noqa: S311
    texts = [f"line {number}" for number in range(300)]
    whole = write._copy_items

    def maybe_cut(*given: Any) -> None:
        if dice.random() < 0.3:
            raise Cut("in the middle")
        whole(*given)

    monkeypatch.setattr(write, "_copy_items", maybe_cut)
    position = Position()
    while position.lines < len(texts):
        size = dice.randint(1, 20)
        part = texts[position.lines : position.lines + size]
        step = batch(
            run,
            position,
            lines=[(text, 20) for text in part],
            items=[json.dumps({"n": position.items + index}).encode() for index in range(len(part))],
        )
        try:
            put(step)
            if dice.random() < 0.3:
                raise Cut("after the commit")
            position = step.position
        except OperationalError:
            at = Run.objects.get(pk=run.pk)
            attempt = Attempt.objects.get(run=run)
            position = Position(attempt.out_offset, attempt.records_offset, lines=at.lines, items=at.items)
    assert stored_lines(run) == list(enumerate(texts, 1))
    assert stored_items(run) == [(number + 1, {"n": number}) for number in range(300)]


def test_two_agents_with_different_tokens_store_each_window_once(run: Run) -> None:
    dice = random.Random(7)  # noqa: S311
    positions = {1: Position(), 2: Position()}
    token = 1
    for number in range(200):
        if dice.random() < 0.1:
            token = 3 - token if token < 2 else 2
            Run.objects.filter(pk=run.pk).update(token=token)
            at, attempt = Run.objects.get(pk=run.pk), Attempt.objects.get(run=run)
            positions[token] = Position(attempt.out_offset, attempt.records_offset, lines=at.lines, items=at.items)
        agent = dice.choice((1, 2))
        step = batch(run, positions[agent], token=agent, lines=[(f"{number}", 20)])
        if put(step):
            assert agent == token
            positions[agent] = step.position
    lines = stored_lines(run)
    assert [number for number, _text in lines] == list(range(1, len(lines) + 1))
    assert len(lines) == Run.objects.get(pk=run.pk).lines == Attempt.objects.get(run=run).lines


def test_merged_chunks_hold_the_same_lines(run: Run) -> None:
    position = Position()
    for number in range(50):
        step = batch(run, position, lines=[(f"{number} {'x' * 3000}", 20), ("WARNING", 30)])
        put(step)
        position = step.position
    before = stored_lines(run)
    store.merge_chunks(run.pk)
    chunks = list(LogChunk.objects.filter(run_id=run.pk).order_by("first_line"))
    assert len(chunks) == 1
    assert stored_lines(run) == before
    assert (chunks[0].last_line, chunks[0].levels) == (100, [0, 50, 50, 0, 0])
    assert store.merge_chunks(run.pk) == 1


def test_chunks_are_not_merged_beyond_their_size(run: Run) -> None:
    position = Position()
    for _ in range(10):
        step = batch(run, position, lines=[("x" * 60_000, 20)])
        put(step)
        position = step.position
    store.merge_chunks(run.pk)
    sizes = list(LogChunk.objects.filter(run_id=run.pk).values_list("raw_bytes", flat=True))
    assert len(sizes) == 3
    assert max(sizes) <= store.MERGED_BYTES


def test_partitions_are_made_ahead(db: None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        store.keep_partitions(today=datetime(2031, 12, 5, tzinfo=UTC).date())
        cursor.execute("SELECT to_regclass('runs_item_y2031m12'), to_regclass('runs_logchunk_y2032m01')")
        assert None not in cursor.fetchone()
