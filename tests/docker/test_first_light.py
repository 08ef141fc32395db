"""What a person does first: sign in, pick `books`, fill in the form, run it, watch, look, download."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, PHONE
from tests.panel import PASSWORD, Panel

pytestmark = [pytest.mark.docker, pytest.mark.browser, pytest.mark.timeout(420)]

RUN_SECONDS = 180
LOOKS = [
    (theme, language, size) for theme in ("light", "dark") for language in ("en", "zh-CN") for size in ("1280", "390")
]


def picture(page: Page, folder: Path, name: str) -> None:
    """Into the folder CLAWPANEL_SCREENSHOTS (docs/screenshots when they are renewed), else the test's own."""
    target = Path(os.environ.get("CLAWPANEL_SCREENSHOTS") or folder)
    target.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=target / f"{name}.png", animations="disabled")


def sign_in(page: Page, running: Panel) -> None:
    page.goto(f"{running.url}/")
    page.locator("#id_login").fill("admin")
    page.locator("#id_password").fill(PASSWORD)
    page.locator("#id_password").press("Enter")
    page.wait_for_url("**/runs/")


def test_a_person_runs_books_and_downloads_the_data(running: Panel, browser: Browser, tmp_path: Path) -> None:
    complaints: list[str] = []
    context = browser.new_context(viewport=DESKTOP, locale="en", accept_downloads=True)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(page, running)

    page.get_by_role("link", name="Spiders").first.click()
    page.get_by_role("link", name="Books", exact=True).first.click()
    page.get_by_role("link", name="Create job").first.click()
    page.get_by_label("Name", exact=False).first.fill("Books for a look")
    page.get_by_label("Pages at most").fill("2")
    picture(page, tmp_path, "job-form")
    page.get_by_role("button", name="Save and run now").click()

    page.wait_for_url("**/runs/*/**")
    expect(page.get_by_text("Succeeded").first).to_be_visible(timeout=RUN_SECONDS * 1000)
    run = int(page.url.rstrip("/").split("/runs/")[1].split("/")[0].split("?")[0])

    page.get_by_role("link", name="Log", exact=True).first.click()
    page.wait_for_url("**tab=log**")  # else the old page takes what is typed, and goes
    page.get_by_placeholder("Search").first.fill("Spider closed")
    page.keyboard.press("Enter")
    expect(page.locator("[data-log=view]")).to_contain_text("Spider closed")
    picture(page, tmp_path, "run-log")

    page.get_by_role("link", name="Data", exact=True).first.click()
    stored = running.items(run)
    assert len(stored) >= 20
    expect(page.locator("main table")).to_contain_text(stored[0]["title"])
    picture(page, tmp_path, "run-data")

    page.get_by_text("Download", exact=False).first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Excel").first.click()
    path = tmp_path / "books.csv"
    download.value.save_as(path)
    content = path.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf"), "Excel takes UTF-8 only with a BOM"
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    assert [row["title"] for row in rows] == [item["title"] for item in stored]
    assert not complaints
    context.close()


@pytest.mark.parametrize(("theme", "language", "size"), LOOKS)
def test_every_page_fits_its_window(
    running: Panel, browser: Browser, tmp_path: Path, theme: str, language: str, size: str
) -> None:
    context = browser.new_context(
        viewport=DESKTOP if size == "1280" else PHONE,  # type: ignore[arg-type]  # playwright's own TypedDict
        locale=language,
        color_scheme="dark" if theme == "dark" else "light",
    )
    page = context.new_page()
    sign_in(page, running)
    pages = {
        "runs": "/runs/",
        "run-log": "/runs/1/?tab=log",
        "run-data": "/runs/1/?tab=data",
        "run-metrics": "/runs/1/?tab=metrics",
        "run-parameters": "/runs/1/?tab=parameters",
        "run-events": "/runs/1/?tab=events",
        "spiders": "/spiders/",
        "spider": "/spiders/books/",
        "jobs": "/jobs/",
        "job": "/jobs/1/",
        "job-new": "/jobs/new/?spider=books",
    }
    wide = []
    for name, path in pages.items():
        page.goto(running.url + path)
        page.wait_for_load_state("networkidle")
        picture(page, tmp_path, f"{name}-{theme}-{size}-{language[:2]}")
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            wide.append(name)
    context.close()
    assert wide == [], "these pages scroll sideways"


def test_an_operator_makes_and_runs_a_job_in_the_admin(running: Panel, browser: Browser) -> None:
    context = browser.new_context(viewport=DESKTOP, locale="en")
    page = context.new_page()
    sign_in(page, running)
    page.goto(f"{running.url}/admin/jobs/job/add/?spider=prices")
    page.locator("input[name=name]").fill("Prices from the admin")
    page.locator("button[name=save]").click()
    page.wait_for_url("**/admin/jobs/job/")

    page.get_by_role("row", name="Prices from the admin").locator("input[name=_selected_action]").check()
    page.locator("select[name=action]").first.select_option("run_now")
    page.locator("button[name=index]").first.click()
    expect(page.locator("body")).to_contain_text("of job Prices from the admin is queued")

    newest = running.get("runs/", limit=1)["results"][0]
    ended = running.wait(newest["id"], RUN_SECONDS)
    assert (ended["state"], ended["spider"]) == ("succeeded", "prices")
    assert ended["items"] > 0
    page.goto(f"{running.url}/admin/runs/run/{newest['id']}/change/")
    expect(page.locator("body")).to_contain_text("Succeeded")
    context.close()
