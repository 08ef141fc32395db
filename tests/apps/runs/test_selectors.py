"""Logs and items are read exactly, whatever the chunks they were stored in."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts import rights
from apps.runs import selectors, store
from apps.runs.models import LogChunk, Run
from apps.runs.selectors import logs as reading
from apps.runs.store import Row
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import RunFactory, UserFactory

pytestmark = pytest.mark.django_db

texts = st.sampled_from(
    ["plain", "Needle here", "a NEEDLE", 'qu"ote \\ back', "[1,2,30,", "中文 needle", "Ärger", "tab\t", ""]
)
logs = st.lists(st.tuples(st.sampled_from([10, 20, 30, 40, 50]), texts), max_size=40)
sizes = st.lists(st.integers(1, 9), max_size=12)


def numbered(log: list[tuple[int, str]]) -> list[Row]:
    return [row(line, text, level) for line, (level, text) in enumerate(log, 1)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    log=logs,
    sizes=sizes,
    level=st.sampled_from([0, 10, 20, 30, 40, 50]),
    search=st.sampled_from(["", "needle", "NEEDLE", '"', "\\", "中文", "ärger", "[1,2", ",20,"]),
    limit=st.integers(1, 12),
    span=st.tuples(st.integers(0, 42), st.integers(1, 44)),
)
def test_pages_are_exact_for_any_chunking(
    log: list[tuple[int, str]], sizes: list[int], level: int, search: str, limit: int, span: tuple[int, int]
) -> None:
    run, rows, (after, before) = RunFactory(), numbered(log), span
    store_rows(run, rows, sizes)
    wanted = [each for each in rows if each[2] >= level and search.lower() in each[3].lower()]

    found, place = [], 0
    while True:
        page = selectors.log_page(run, after=place, limit=limit, level=level, search=search)
        found += page.rows
        if page.complete:
            break
        assert page.scanned > place
        place = page.scanned
    backwards, place = [], len(rows) + 1
    while True:
        page = selectors.log_page_before(run, before=place, limit=limit, level=level, search=search)
        backwards = page.rows + backwards
        if page.complete:
            break
        assert page.scanned < place
        place = page.scanned
    between = selectors.log_page(run, after=after, before=before, level=level, search=search)

    assert found == wanted
    assert backwards == wanted
    assert between.rows == [each for each in wanted if after < each[0] < before]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs, sizes=sizes, block=st.integers(1, 20))
def test_the_index_counts_every_line_once(log: list[tuple[int, str]], sizes: list[int], block: int) -> None:
    run, rows = RunFactory(), numbered(log)
    store_rows(run, rows, sizes)

    blocks = selectors.log_index(run, lines=block)

    assert sum(sum(each[2:7]) for each in blocks) == len(rows)
    assert sum(each.error for each in blocks) == sum(1 for each in rows if each[2] == 40)
    covered = [line for each in blocks for line in range(each.first, each.last + 1)]
    assert covered == [each[0] for each in rows]


def test_the_file_holds_the_lines_as_printed() -> None:
    run = RunFactory()
    store_rows(run, [row(1, "a\rb\r"), row(2, ""), row(3, "\x1b[31m中")], [1])

    assert b"".join(selectors.log_text(run)) == "a\rb\r\n\n\x1b[31m中\n".encode()


def test_a_page_ends_when_its_time_is_up_and_says_where() -> None:
    run = RunFactory()
    store_rows(run, [row(line) for line in range(1, 101)], [10] * 10)

    page = selectors.log_page(run, search="nowhere", seconds=0)

    assert (page.rows, page.scanned, page.complete) == ([], 10, False)


def test_a_page_is_bounded_in_bytes() -> None:
    run = RunFactory()
    store_rows(run, [row(line, "x" * 60_000) for line in range(1, 201)], [50] * 4)

    page = selectors.log_page(run, limit=1000)

    assert 60 < len(page.rows) < 80
    assert page.scanned == page.rows[-1][0]


def test_a_rare_level_reads_only_the_chunks_that_have_it() -> None:
    run = RunFactory()
    rows = [row(line, level=40 if line == 555 else 20) for line in range(1, 1001)]
    store_rows(run, rows, [10] * 100)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = selectors.log_rows(run, level=40)

    assert [each[0] for each in found] == [555]
    assert len(queries) == 1


def test_chunks_that_are_merged_while_they_are_read_lose_and_double_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has just ended: its chunks are packed into few while somebody downloads its log."""
    wanted = list(range(1, 401))
    for read in ("text", "page", "before"):
        run = RunFactory()
        store_rows(run, [row(line) for line in wanted], [2] * 200)
        unpack, seen = reading._unpack, 0

        def unpack_and_merge(chunk: LogChunk, run: Run = run, unpack: Any = unpack) -> bytes:
            nonlocal seen
            seen += 1
            if seen == 20:
                store.merge_chunks(run.pk)
            return unpack(chunk)

        with monkeypatch.context() as patch:
            patch.setattr(reading, "_unpack", unpack_and_merge)
            if read == "text":
                found = [int(line.split()[1]) for line in b"".join(selectors.log_text(run)).splitlines()]
            elif read == "page":
                found = [each[0] for each in selectors.log_rows(run)]
            else:
                found = [each[0] for each in selectors.log_rows_before(run, before=401)]
        assert found == wanted, read
        assert LogChunk.objects.filter(run_id=run.pk).count() == 1


def test_other_runs_and_attempts_do_not_show() -> None:
    run, other = RunFactory(), RunFactory()
    store_rows(run, [row(1, "mine")])
    store_rows(other, [row(1, "theirs")])

    assert [each[3] for each in selectors.log_rows(run)] == ["mine"]
    assert selectors.log_rows(run, attempt=2) == []


def test_an_attempt_has_its_own_lines_and_items() -> None:
    run = RunFactory(attempt=2)
    store_rows(run, [row(1, "first"), row(2, "broken", 40)])
    store_rows(run, [row(3, "second")], attempt=2)
    store_items(run, [{"old": 1}])
    store_items(run, [{"new": 2}], first=2, attempt=2)

    assert [each[3] for each in selectors.log_rows(run, attempt=2)] == ["second"]
    assert [(each.first, each.last) for each in selectors.log_index(run, attempt=2)] == [(3, 3)]
    assert selectors.lines_before(run, attempt=2) == 2
    assert selectors.lines_before(run, attempt=1) == 0
    assert b"".join(selectors.log_text(run, attempt=1)) == b"first\nbroken\n"
    assert [item.seq for item in selectors.item_page(run, attempt=2)] == [2]
    assert b"".join(selectors.items_jsonl(run, attempt=1)) == b'{"old": 1}\n'
    assert selectors.item_columns(run, attempt=2) == ["new"]


def test_long_logs_are_searched_in_a_moment() -> None:
    run = RunFactory()
    filler = "2026-11-30 12:00:00 [spider] INFO: crawled page {} of the catalogue, 200 OK, 12 kB in 0.2 s"
    for start in range(1, 300_001, 100_000):
        rows = [row(line, filler.format(line * 7919 % 1_000_003)) for line in range(start, start + 100_000)]
        if start == 200_001:
            rows[77_000] = row(start + 77_000, "the Needle", 40)
        store_rows(run, rows, [2500] * 40)

    begin = time.perf_counter()
    found = selectors.log_rows(run, search="needle")
    searched = time.perf_counter() - begin
    begin = time.perf_counter()
    page = selectors.log_rows(run, after=170_000, limit=200)
    paged = time.perf_counter() - begin

    assert [each[0] for each in found] == [277_001]
    assert [each[0] for each in page] == list(range(170_001, 170_201))
    assert searched < 1.5
    assert paged < 0.1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 30), limit=st.integers(1, 12))
def test_items_come_once_and_in_order(count: int, limit: int) -> None:
    run = RunFactory()
    store_items(run, [{"n": n} for n in range(count)])
    found: list[int] = []
    while page := selectors.item_page(run, after=len(found), limit=limit):
        found += [item.data["n"] for item in page]

    assert found == list(range(count))


def test_columns_begin_with_those_of_the_item_schema() -> None:
    run = RunFactory()
    run.version.item_schema = {"type": "object", "properties": {"title": {}, "absent": {}, "price": {}}}
    store_items(run, [{"extra": 1, "price": 2}, {"title": "x", "a": None}])

    assert selectors.item_columns(run) == ["title", "price", "extra", "a"]


@pytest.mark.parametrize("action", ["view", "view_log", "view_data", "export_data", "stop", "run"])
def test_rights_on_a_run_are_those_granted_on_its_job(action: str) -> None:
    run, user = RunFactory(), UserFactory()
    rights.grant(user, action, run.job)
    every = ("view", "view_log", "view_data", "export_data", "stop", "run")

    assert rights.actions_on(user, run, every) == {action}
    assert rights.actions_on(UserFactory(), run, every) == set()
    assert list(selectors.visible_runs(user, action)) == [run]


def test_the_samples_of_a_long_run_are_thinned_and_end_with_the_newest() -> None:
    run = RunFactory()
    Run.objects.get(pk=run.pk).samples.bulk_create(
        run.samples.model(
            run=run,
            at=run.queued_at,
            attempt=1,
            cpu_percent=n,
            memory_bytes=1,
            memory_limit_bytes=2,
            pids=1,
            lines=n,
            items=0,
        )
        for n in range(100)
    )

    samples = selectors.samples(run, limit=10)

    assert len(samples) <= 11
    assert samples[-1].lines == 99
