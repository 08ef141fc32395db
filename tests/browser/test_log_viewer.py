"""The page of a run in a real browser: long logs, live logs, hostile logs and hostile items."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from apps.accounts import rights
from apps.accounts.models import User
from apps.engine.levels import Leveler
from apps.runs import live
from apps.runs.models import ResourceSample, Run, RunEvent
from apps.runs.states import State
from apps.runs.store import Row
from tests.apps.runs.logged import row, store_items, store_rows
from tests.browser.conftest import PHONE, OpenPage
from tests.factories import AttemptFactory, RunFactory, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CASES = Path(__file__).parents[1] / "cases"
MIB = 1024 * 1024
MAX_DOM_ROWS = 150


@pytest.fixture
def run(transactional_db: None) -> Run:
    begin = datetime.now(UTC) - timedelta(minutes=3)
    made: Run = RunFactory(
        state=State.RUNNING,
        queued_at=begin,
        started_at=begin + timedelta(seconds=2),
        requests=512,
        attempt=1,
        memory_peak_bytes=180 * MIB,
    )
    return made


@pytest.fixture
def reader(run: Run) -> User:
    user: User = UserFactory(username="grace")
    rights.grant(user, "auditor", run.job)
    return user


def finish(run: Run, state: State = State.SUCCEEDED, **fields: Any) -> None:
    Run.objects.filter(pk=run.pk).update(state=state, finished_at=datetime.now(UTC), **fields)
    live.publish_state(run.pk, {"state": str(state)})


def say(run: Run, rows: list[Row]) -> None:
    store_rows(run, rows)
    live.publish_lines(run.pk, rows)


def shown_lines(page: Page) -> list[int]:
    numbers: list[int] = page.eval_on_selector_all(
        ".claw-log-row[data-line]", "rows => rows.map(row => Number(row.dataset.line))"
    )
    return numbers


def in_view(page: Page, line: int) -> bool:
    visible: bool = page.evaluate(
        """line => {
            const row = document.querySelector(`.claw-log-row[data-line="${line}"]`);
            if (!row) return false;
            const view = document.querySelector("[data-log=view]").getBoundingClientRect();
            const box = row.getBoundingClientRect();
            return box.top >= view.top - 1 && box.bottom <= view.bottom + 1;
        }""",
        line,
    )
    return visible


def until(check: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.05)


def test_a_log_of_200_000_lines_scrolls_to_its_end_with_few_rows_in_the_document(
    run: Run, reader: User, open_page: OpenPage
) -> None:
    rows = [row(n, f"crawled page {n}", 40 if n % 20_000 == 7 else 10 if n % 3 == 0 else 20) for n in range(1, 200_001)]
    store_rows(run, rows, [2500] * 80)
    finish(run)
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    expect(page.locator(".claw-log-row[data-line='1']")).to_be_visible()
    expect(page.locator("[data-log=footer]")).to_contain_text("200,000 lines")

    page.locator("[data-log=view]").press("End")
    until(lambda: in_view(page, 200_000))
    assert len(shown_lines(page)) < MAX_DOM_ROWS
    for _turn in range(30):
        page.mouse.move(640, 600)
        page.mouse.wheel(0, -1500)
    until(lambda: not in_view(page, 200_000) and bool(shown_lines(page)))
    assert page.locator(".claw-log-row").count() < MAX_DOM_ROWS
    numbers = shown_lines(page)
    assert numbers == [n for n in range(numbers[0], numbers[-1] + 1) if n % 3 or n % 20_000 == 7]

    page.select_option("[data-log=level]", "40")
    expect(page.locator("[data-log=footer]")).to_contain_text("10 shown")
    page.locator("[data-log=view]").press("Home")
    until(lambda: shown_lines(page) == [n for n in range(1, 200_001) if n % 20_000 == 7])

    page.select_option("[data-log=level]", "10")
    page.fill("[data-log=search]", "PAGE 123456")
    page.locator("[data-log=search]").press("Enter")
    expect(page.locator("[data-log=hit]")).to_have_text("Line 123,456")
    until(lambda: in_view(page, 123_456))
    expect(page.locator(".claw-log-row[data-line='123456'] mark")).to_have_text("page 123456")

    page.goto(f"/runs/{run.pk}/?tab=log#L99999")
    until(lambda: in_view(page, 99_999))
    expect(page.locator(".claw-log-marked")).to_have_attribute("data-line", "99999")
    page.click("[data-log=error]")
    until(lambda: in_view(page, 7))


def test_a_log_longer_than_a_browser_can_scroll_is_scrolled_to_scale(
    run: Run, reader: User, open_page: OpenPage
) -> None:
    for start in range(1, 600_001, 100_000):
        store_rows(run, [row(n, f"n {n}") for n in range(start, start + 100_000)], [5000] * 20)
    finish(run)
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    view = page.locator("[data-log=view]")
    expect(page.locator(".claw-log-row[data-line='1']")).to_be_visible()

    page.mouse.move(640, 600)
    page.mouse.wheel(0, 200)
    until(lambda: in_view(page, 11) and not in_view(page, 10))
    view.press("End")
    until(lambda: in_view(page, 600_000))
    view.press("PageUp")
    until(lambda: not in_view(page, 600_000))
    view.evaluate("view => { view.scrollTop = view.scrollHeight / 2; }")
    until(lambda: any(abs(n - 300_000) < 100 for n in shown_lines(page)))
    assert page.locator(".claw-log-row").count() < MAX_DOM_ROWS


def test_a_live_log_is_followed_until_the_reader_scrolls_up(run: Run, reader: User, open_page: OpenPage) -> None:
    say(run, [row(n) for n in range(1, 201)])
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    until(lambda: in_view(page, 200))
    expect(page.locator("[data-log=footer]")).to_contain_text("live")
    say(run, [row(n) for n in range(201, 301)])
    until(lambda: in_view(page, 300))

    page.mouse.move(640, 600)
    page.mouse.wheel(0, -600)
    expect(page.locator("[data-log=follow]")).to_have_attribute("aria-pressed", "false")
    say(run, [row(n) for n in range(301, 401)])
    expect(page.locator("[data-log=footer]")).to_contain_text("400 lines")
    assert not in_view(page, 400)
    page.keyboard.press("f")
    until(lambda: in_view(page, 400))

    live.publish_partial(run.pk, "working 50 %")
    expect(page.locator(".claw-log-other")).to_have_text("working 50 %")
    page.click("[data-log=clear]")
    expect(page.locator("[data-log=empty]")).to_have_text("Cleared. New lines appear here.")
    say(run, [row(401, "after the clearing")])
    until(lambda: shown_lines(page) == [401])
    finish(run)
    expect(page.locator("[data-log=footer]")).to_contain_text("complete")
    expect(page.locator("#run-head [data-state=succeeded]").first).to_be_visible()


def test_a_lost_connection_is_made_again_and_leaves_no_gap(run: Run, reader: User, open_page: OpenPage) -> None:
    say(run, [row(n) for n in range(1, 51)])
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    until(lambda: in_view(page, 50))

    page.evaluate("clawLog.socket.close()")
    expect(page.locator("[data-log=strip]")).to_be_visible()
    say(run, [row(n) for n in range(51, 81)])
    until(lambda: in_view(page, 80))

    expect(page.locator("[data-log=strip]")).to_be_hidden()
    held = page.evaluate("clawLog.store.blocks.flatMap(block => block.rows.map(row => row[0]))")
    assert held == list(range(1, 81))


def test_no_line_of_a_flood_is_missing(run: Run, reader: User, open_page: OpenPage) -> None:
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    expect(page.locator("[data-log=empty]")).to_have_text("No lines yet.")

    for start in range(1, 20_001, 500):
        say(run, [row(n, f"flood {n} " + "x" * 80) for n in range(start, start + 500)])
    finish(run)

    expect(page.locator("[data-log=footer]")).to_contain_text("20,000 lines", timeout=20_000)
    expect(page.locator("[data-log=footer]")).to_contain_text("complete")
    blocks = page.evaluate(
        "clawLog.store.blocks.map(block => [block.first, block.last, block.rows ? block.rows.length : -1])"
    )
    assert [first for first, _last, _rows in blocks] == [1, *(last + 1 for _first, last, _rows in blocks[:-1])]
    assert all(rows in (-1, last - first + 1) for first, last, rows in blocks)
    assert in_view(page, 20_000)


def test_the_log_goes_when_the_right_goes(run: Run, reader: User, open_page: OpenPage) -> None:
    say(run, [row(1, "for those who may")])
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    until(lambda: in_view(page, 1))

    rights.revoke(reader, "view_log", run.job)

    expect(page.locator("[data-log=strip]")).to_have_text("You may not read this log any more.", timeout=30_000)
    assert shown_lines(page) == []


def hostile_rows() -> list[Row]:
    rows: list[Row] = []
    for name in ("xss.log", "odd_bytes.bin", "forged_frames.log", "traceback.log"):
        for text, level in Leveler().lines((CASES / "logs" / name).read_bytes()):
            rows.append(row(len(rows) + 1, text, int(level)))
    return rows


def test_hostile_lines_are_shown_as_text(run: Run, reader: User, open_page: OpenPage) -> None:
    store_rows(run, hostile_rows())
    finish(run)
    page = open_page(f"/runs/{run.pk}/?tab=log&level=10", reader)
    title = page.title()
    expect(page.locator(".claw-log-row[data-line='1'] .claw-log-text")).to_have_text(
        "<script>document.title='LOGXSS1'</script>"
    )
    texts = page.locator(".claw-log-text").all_text_contents()

    assert "<img src=x onerror=document.title='LOGXSS2'>" in texts
    assert "&lt;b&gt; must stay as typed" in texts
    assert "{{7*7}} {% debug %}" in texts
    assert "progress 100%" in texts
    assert "nul␀inside" in texts
    assert any("␛[2J␛[H cleared?" in text and "␛[31m" not in text for text in texts)
    assert any("‹U+202E›gpj.exe" in text for text in texts)  # noqa: RUF001 (the marks we use)
    hrefs = page.eval_on_selector_all(".claw-log-text a", "links => links.map(link => [link.protocol, link.rel])")
    assert hrefs
    assert all(each == ["https:", "noopener noreferrer"] for each in hrefs)
    assert page.locator(".claw-log-text script, .claw-log-text img, .claw-log-text svg").count() == 0
    page.fill("[data-log=search]", "<script>")
    page.locator("[data-log=search]").press("Enter")
    expect(page.locator("[data-log=hit]")).to_have_text("Line 1")
    assert page.title() == title
    assert "XSS" not in title


def hostile_items() -> list[Any]:
    lines = (CASES / "items" / "items_hostile.jsonl").read_text().split("\n")
    return [json.loads(line)["data"] for line in lines if line.strip()]


@pytest.mark.parametrize("query", ["", "&raw=1"])
def test_hostile_items_are_shown_as_text(run: Run, reader: User, open_page: OpenPage, query: str) -> None:
    store_items(run, hostile_items())
    finish(run)
    page = open_page(f"/runs/{run.pk}/?tab=data{query}", reader)
    title = page.title()
    for each in page.locator("details summary").all()[:20]:
        if each.is_visible():
            each.click()

    body = page.locator("main").inner_text()
    assert "<script>document.title='XSS1'</script>" in body
    assert "{{7*7}} {% debug %}" in body
    assert "Tom &amp; Jerry &lt;b&gt;" in body
    assert "‹U+202E›" in body  # noqa: RUF001 (the marks we use)
    links = page.eval_on_selector_all("main .card a[href]", "links => links.map(link => [link.protocol, link.rel])")
    assert all(each == ["https:", "noopener noreferrer"] for each in links if each[0] != "http:")
    assert bool(query) or ["https:", "noopener noreferrer"] in links
    assert (
        page.eval_on_selector_all("a[href]", "links => links.filter(l => /^(javascript|data):/i.test(l.href)).length")
        == 0
    )
    assert page.locator("table.claw-items th").count() <= 31
    assert page.title() == title
    assert "XSS" not in title
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_csv_of_hostile_items_comes_as_a_file(run: Run, reader: User, open_page: OpenPage) -> None:
    store_items(run, hostile_items())
    finish(run)
    page = open_page(f"/runs/{run.pk}/?tab=data", reader)
    page.locator(".claw-data-tools summary").click()

    with page.expect_download() as download:
        page.get_by_role("link", name="CSV for Excel").click()

    content = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == f"run-{run.pk}-items.csv"
    assert content.startswith(b"\xef\xbb\xbf")
    cells = [cell for line in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")) for cell in line]
    assert not [cell for cell in cells if cell.lstrip()[:1] in ("=", "+", "@")]


def test_new_items_are_announced(run: Run, reader: User, open_page: OpenPage) -> None:
    store_items(run, [{"title": f"item {n}"} for n in range(3)])
    page = open_page(f"/runs/{run.pk}/?tab=data", reader)
    expect(page.locator("#new-items")).to_contain_text("3 items")

    store_items(run, [{"title": "another"}], first=4)

    page.get_by_role("link", name="+1 new – refresh").click()  # noqa: RUF001 (an en dash)
    expect(page.get_by_text("another")).to_be_visible()


def lived_in(run: Run) -> None:
    """Something on every tab."""
    begin = run.started_at
    assert begin is not None
    spec = {
        **run.spec,
        "parameters": {"keywords": ["sea", "winter"], "max_pages": 10, "start_url": "https://books.test/"},
    }
    run.spec = {**spec, "secrets": {"password": 1}, "env": {"HTTP_PROXY": "http://proxy.test:3128"}}
    run.save(update_fields=["spec"])
    AttemptFactory(run=run, started_at=begin, environment="runner:3.12", executor="docker")
    for seconds, before, after, actor in (
        (-2, "", "queued", "ada"),
        (-1, "queued", "starting", "agent: crawl-1"),
        (0, "starting", "running", "agent: crawl-1"),
    ):
        RunEvent.objects.create(
            run=run,
            at=begin + timedelta(seconds=seconds),
            from_state=before,
            to_state=after,
            actor=actor,
            attempt=1 if after != "queued" else 0,
        )
    ResourceSample.objects.bulk_create(
        ResourceSample(
            run=run,
            at=begin + timedelta(seconds=5 * n),
            attempt=1,
            cpu_percent=20 + 30 * (n % 7) / 7 + n,
            memory_bytes=(60 + 4 * n) * MIB,
            memory_limit_bytes=512 * MIB,
            pids=3,
            lines=n * 40,
            items=n * 9 + n * n,
        )
        for n in range(34)
    )
    words = [
        "INFO: crawled https://books.test/catalogue/page-{n}.html (200) in 0.2 s",
        "DEBUG: scraped <200 https://books.test/{n}>",
        "INFO: \x1b[32mitem {n}\x1b[0m stored, \x1b[1;36mprice\x1b[0m 12.50",
        "WARNING: retrying page {n}: 503",
        "INFO: 第 {n} 页",
    ]
    rows = [
        row(n, f"2026-11-30 12:00:{n % 60:02} [books] " + words[n % 5].format(n=n), (20, 10, 20, 30, 20)[n % 5])
        for n in range(1, 1201)
    ]
    rows += [
        row(1200 + n, text, int(level))
        for n, (text, level) in enumerate(Leveler().lines((CASES / "logs" / "traceback.log").read_bytes()), 1)
    ]
    store_rows(run, rows, [400, 400])
    store_items(
        run,
        [
            {
                "title": f"A Light in the Attic {n}",
                "price": 51.77 + n,
                "in_stock": n % 2 == 0,
                "url": f"https://books.test/{n}/",
                "image": f"https://books.test/{n}.jpg",
                "tags": ["poetry", "children"] if n % 3 else [],
                "description": "It is hard to imagine a world without it. " * (1 + 5 * (n % 2)),
                "rating": None if n % 4 == 0 else n % 5,
                "seller": {"name": "", "city": "Köln"},
            }
            for n in range(60)
        ],
    )


@pytest.mark.parametrize("tab", ["log", "data", "metrics", "parameters", "events"])
def test_every_tab_fits_the_screen(
    run: Run, reader: User, open_page: OpenPage, take_screenshot: Callable[[Page, str], Path], tab: str
) -> None:
    lived_in(run)
    for theme, size, name in (
        ("light", None, "desktop"),
        ("dark", None, "dark"),
        ("light", PHONE, "phone"),
        ("dark", PHONE, "phone-dark"),
    ):
        page = open_page(f"/runs/{run.pk}/?tab={tab}", reader, theme=theme, size=size)
        expect(page.locator(".claw-tabs a.active")).to_be_visible()
        if tab == "log":
            until(lambda page=page: bool(shown_lines(page)))
        if tab == "metrics":
            expect(page.locator(".u-over").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{tab} is too wide: {name}"
        take_screenshot(page, f"run-{tab}-{name}")
        page.close()


def test_long_lines_wrap_and_the_end_stays_reachable(run: Run, reader: User, open_page: OpenPage) -> None:
    store_rows(run, [row(n, f"{n} " + "long words " * (60 if n % 2 else 1)) for n in range(1, 301)])
    finish(run)
    page = open_page(f"/runs/{run.pk}/?tab=log", reader)
    view = page.locator("[data-log=view]")
    until(lambda: in_view(page, 1))

    page.keyboard.press("w")
    until(lambda: page.locator(".claw-log-wrapped").count() == 1)
    seen: set[int] = set()
    for _step in range(320):
        seen.update(n for n in shown_lines(page) if in_view(page, n))
        if in_view(page, 300):
            break
        view.press("ArrowDown")
        page.evaluate("() => new Promise(requestAnimationFrame)")

    assert seen == set(range(1, 301))
    assert page.evaluate(
        "document.querySelector('[data-log=view]').scrollWidth <= document.querySelector('[data-log=view]').clientWidth"
    )


def test_a_search_before_the_log_is_there_is_shown_when_it_is(run: Run, reader: User, open_page: OpenPage) -> None:
    finish(run)
    store_rows(run, [row(number, f"line {number}") for number in range(1, 2001)])
    page = open_page("/healthz", reader)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/log/index/*", hold)
    page.goto(f"/runs/{run.pk}/?tab=log")
    page.get_by_label("Search the log").fill("line 1999")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    held.pop().continue_()
    expect(page.locator("[data-log=view]")).to_contain_text("line 1999")
