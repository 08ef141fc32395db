"""Every page in both themes, both languages and both widths: nothing sticks out and the browser has no complaint."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page

from apps.core.actors import person
from apps.runs import places
from apps.runs.models import Node, Pool
from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.browser.gallery import furnish
from tests.browser.schedule_gallery import schedule_jobs

pytestmark = pytest.mark.browser

LOOKS = (
    ("light", "en", DESKTOP),
    ("dark", "zh-hans", DESKTOP),
    ("dark", "en", PHONE),
    ("light", "zh-hans", PHONE),
)
PAGES = {
    "runs": "/runs/",
    "spiders": "/spiders/",
    "spider": "/spiders/books/",
    "jobs": "/jobs/",
    "job": "/jobs/{job}/",
    "new-job": "/jobs/new/?spider=books",
    "edit-job": "/jobs/{job}/edit/",
    "run-with-changes": "/jobs/{job}/run/?param.max_pages=2",
    "ledger": "/jobs/{job}/ledger/?at=2026-03-04T09:00",
    "new-schedule": "/jobs/{job}/schedules/new/",
    "edit-schedule": "/schedules/{schedule}/edit/",
    "delete-schedule": "/schedules/{schedule}/delete/",
    "schedules": "/schedules/",
    "schedules-off": "/schedules/off/",
    "calendar": "/schedules/calendar/",
    "calendar-week": "/schedules/calendar/?view=week",
    "run-log": "/runs/{run}/?tab=log",
    "run-log-attempt": "/runs/{run}/?tab=log&attempt=2",
    "run-data-attempt": "/runs/{run}/?tab=data&attempt=2",
    "run-events": "/runs/{run}/?tab=events",
    "run-parameters": "/runs/{run}/?tab=parameters",
    "run-again": "/runs/{run}/rerun/",
    "nodes": "/nodes/",
    "node": "/nodes/{node}/",
    "maintenance": "/nodes/maintenance/",
    "pools": "/pools/",
    "pool-form": "/pools/new/",
    "pool-delete": "/pools/{pool}/delete/",
    "password": "/accounts/password/change/",
}


def width_beyond_screen(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize(("theme", "language", "size"), LOOKS)
def test_pages_fit_their_screen(
    open_page: OpenPage,
    take_screenshot: Callable[[Page, str], Path],
    now: datetime,
    theme: str,
    language: str,
    size: dict[str, int],
) -> None:
    ada, job, run = furnish(now)
    node, pool = Node.objects.get(name="crawl-1"), Pool.objects.get(name="shop.example")
    places.begin_maintenance(by=person(ada), now=now, why="The disks of crawl-2 are replaced.")
    schedule = schedule_jobs(ada, job, now)
    page = open_page("/runs/", ada, theme=theme, language=language, size=size)
    too_wide = []
    for name, path in PAGES.items():
        page.goto(path.format(job=job.pk, run=run.pk, node=node.pk, pool=pool.pk, schedule=schedule.pk))
        take_screenshot(page, f"{name}-{theme}-{language}-{size['width']}")
        if beyond := width_beyond_screen(page):
            too_wide.append(f"{name}: {beyond} px")
    assert not too_wide


@pytest.mark.parametrize(("theme", "language", "size"), LOOKS)
def test_the_sign_in_page_fits_its_screen(
    open_page: OpenPage,
    take_screenshot: Callable[[Page, str], Path],
    theme: str,
    language: str,
    size: dict[str, int],
) -> None:
    page = open_page("/accounts/login/", theme=theme, language=language, size=size)
    take_screenshot(page, f"login-{theme}-{language}-{size['width']}")
    assert width_beyond_screen(page) == 0
