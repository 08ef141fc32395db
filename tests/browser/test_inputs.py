"""Running a table of inputs, and a backfill, in the browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from apps.core.actors import person
from apps.jobs.services.batches import settle
from apps.jobs.services.groups import start_backfill, start_inputs
from apps.runs.models import Batch
from apps.runs.states import State
from tests.apps.jobs.groups.grouped import end, runs_of, schedule_of, searching
from tests.apps.runs.logged import store_items
from tests.browser.conftest import PHONE, OpenPage
from tests.factories import AdminFactory

pytestmark = pytest.mark.browser

Shoot = Callable[[Page, str], Path]


def no_wider_than_the_screen(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_table_is_pasted_corrected_started_followed_and_downloaded(
    open_page: OpenPage, take_screenshot: Shoot, now: datetime
) -> None:
    user, job = AdminFactory(), searching(name="Words")
    page = open_page(f"/jobs/{job.pk}/", user)
    page.get_by_role("link", name="Run a table").click()
    page.get_by_label("Table", exact=True).fill("keyword\tpages\nsea\t2\nsun\tmany\nrain\t\n")
    expect(page.get_by_text("1 of 3 rows are wrong.")).to_be_visible()
    expect(page.locator(".claw-cell-wrong")).to_have_count(1)
    expect(page.locator(".claw-cell-wrong")).to_contain_text("Enter a whole number.")
    take_screenshot(page, "inputs-wrong")

    page.get_by_label("Table", exact=True).fill("keyword\tpages\nsea\t2\nsun\t7\nrain\t\n")
    expect(page.get_by_text("3 rows, and all of them fit.")).to_be_visible()
    expect(page.locator(".claw-cell-wrong")).to_have_count(0)
    page.get_by_label("Name").fill("weather words")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/batches/*/")
    batch = Batch.objects.get()
    expect(page.get_by_role("heading", name="weather words")).to_be_visible()
    expect(page.get_by_text("0 of 3")).to_be_visible()

    first = runs_of(batch)[0]
    store_items(first, [{"title": "Over the sea", "price": 3}])
    end([first])
    settle(batch_id=batch.pk, now=now)
    expect(page.get_by_text("1 of 3")).to_be_visible(timeout=15_000)
    expect(page.locator("[data-state=queued]")).to_have_count(2, timeout=15_000)
    page.get_by_text("Download combined data").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV", exact=True).click()
    assert Path(download.value.path()).read_text().splitlines() == [
        "run,row,input.keyword,input.pages,price,title",
        f"{first.pk},1,sea,2,3,Over the sea",
    ]


def test_a_file_comes_into_the_box_and_can_be_corrected_there(open_page: OpenPage) -> None:
    page = open_page(f"/jobs/{searching().pk}/inputs/", AdminFactory())
    content = "keyword,pages\n海,0\n".encode("gb18030")
    page.get_by_label("Or a CSV file").set_input_files(
        files=[{"name": "words.csv", "mimeType": "text/csv", "buffer": content}]
    )
    box = page.get_by_label("Table", exact=True)
    expect(box).to_have_value("keyword,pages\n海,0\n")
    expect(page.locator(".claw-cell-wrong")).to_have_count(1)
    box.fill("keyword,pages\n海,1\n")
    expect(page.get_by_text("1 row, and it fits.")).to_be_visible()


def test_a_backfill_is_chosen_time_by_time(open_page: OpenPage, take_screenshot: Shoot) -> None:
    user, job = AdminFactory(), searching(name="Nightly words")
    schedule = schedule_of(job, timezone="Asia/Shanghai", name="nightly")
    at = datetime(2026, 11, 19, 16, 5, tzinfo=UTC)
    start_backfill(schedule=schedule, by=person(user), now=datetime(2026, 11, 25, tzinfo=UTC), instants=[at])
    page = open_page(f"/jobs/{job.pk}/", user)
    page.get_by_role("link", name="Backfill").click()
    page.get_by_label("From").fill("2026-11-20T00:00")
    page.get_by_label("To", exact=True).fill("2026-11-23T12:00")
    page.get_by_label("To", exact=True).blur()
    expect(page.get_by_text("4 times · 1 of them has a run already")).to_be_visible()
    expect(page.get_by_label("2026-11-20 00:05 CST")).to_be_disabled()
    page.get_by_label("2026-11-22 00:05 CST").uncheck()
    take_screenshot(page, "backfill")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/batches/*/")
    batch = Batch.objects.order_by("-pk")[0]
    assert [run.batch_key[:10] for run in runs_of(batch)] == ["2026-11-20", "2026-11-22"]
    expect(page.get_by_text("2026-11-21 00:05")).to_be_visible()


def test_what_was_typed_before_the_scripts_were_there_counts(open_page: OpenPage) -> None:
    user, job = AdminFactory(), searching(name="Nightly words")
    schedule = schedule_of(job, timezone="Asia/Shanghai", name="nightly")
    page, scripts, held = open_page("/jobs/", user), "**/htmx-*.js", list[Route]()
    page.route(scripts, lambda route: held.append(route))  # noqa: PLW0108 - playwright marks what it is given
    with page.expect_request(scripts):
        page.goto(f"/schedules/{schedule.pk}/backfill/", wait_until="commit")
    page.get_by_label("From").fill("2026-11-20T00:00")
    page.get_by_label("To", exact=True).fill("2026-11-23T12:00")
    held.pop().continue_()
    expect(page.get_by_text("4 times", exact=True)).to_be_visible()
    with page.expect_request(scripts):
        page.goto(f"/jobs/{job.pk}/inputs/", wait_until="commit")
    page.get_by_label("Table", exact=True).fill("keyword\tpages\nsea\t2\n")
    held.pop().continue_()
    expect(page.get_by_text("1 row, and it fits.")).to_be_visible()


@pytest.mark.parametrize(
    ("theme", "size", "language"), [("light", None, "en"), ("dark", None, "zh-hans"), ("dark", PHONE, "en")]
)
def test_the_pages_look_right(
    open_page: OpenPage,
    take_screenshot: Shoot,
    now: datetime,
    theme: str,
    size: dict[str, int] | None,
    language: str,
) -> None:
    user, job = AdminFactory(), searching(name="Words of a fairly long name")
    words = ["sea", "<b>sun</b>", "rain over the mountains and far away, where nobody has been", "海", "fog", "ice"]
    batch = start_inputs(
        job=job, rows=[{"keyword": w, "pages": n} for n, w in enumerate(words, 1)], by=person(user), now=now
    )
    runs = runs_of(batch)
    end(runs[:2])
    store_items(runs[0], [{"title": "a"}] * 3)
    end(runs[2:3], State.RUNNING)
    end(runs[3:4], State.FAILED)
    name = f"{theme}-{'phone' if size else 'wide'}"
    page = open_page(f"/batches/{batch.pk}/", user, theme=theme, size=size, language=language)
    take_screenshot(page, f"group-{name}")
    no_wider_than_the_screen(page)

    page.goto(f"/jobs/{job.pk}/inputs/")
    page.locator("#id_table").fill("keyword\tpages\tday\nsea\t2\t{{ yesterday }}\nsun\tmany\tsoon\n\t3\t2026-11-30\n")
    expect(page.locator(".claw-cell-wrong")).to_have_count(2)
    take_screenshot(page, f"inputs-{name}")
    no_wider_than_the_screen(page)

    schedule = schedule_of(job, timezone="Europe/Berlin")
    page.goto(f"/schedules/{schedule.pk}/backfill/?start=2026-10-23T00:00&end=2026-10-27T12:00")
    expect(page.locator("input[name=at]")).to_have_count(5)
    take_screenshot(page, f"backfill-{name}")
    no_wider_than_the_screen(page)
