"""A batch of twelve jobs, looked at and lived through."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.core.actors import person
from apps.jobs.models import Job
from apps.jobs.services import run_job
from apps.jobs.services.batches import settle
from apps.runs.models import Batch
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of
from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.factories import AdminFactory, RunFactory, SpiderFactory

pytestmark = pytest.mark.browser

NAMES = (
    "Find shops", "Prices north", "Prices south", "Prices east", "Merge all prices of all regions", "Check prices",
    "Stock", "Pictures", "每日商品价格与库存汇总报告", "Tell the team", "Clean up", "Send the archive",
)  # fmt: skip
LOOKS = (("light", "en", DESKTOP), ("dark", "zh-hans", DESKTOP), ("dark", "en", PHONE), ("light", "zh-hans", PHONE))


def twelve(now: datetime) -> tuple[User, dict[str, Job], Batch]:
    """A graph with every condition, both joins, a line that passes a layer and a job outside."""
    ada = AdminFactory(username="ada")
    spider = SpiderFactory(name="shop")
    jobs = dict(zip("abcdefghijkl", jobs_of(*NAMES, spider=spider), strict=True))
    outside = jobs_of("Exchange rates", spider=spider)[0]
    RunFactory(job=outside, state="succeeded", started_at=now, finished_at=now)
    for child, parents in {"b": "a", "c": "a", "d": "a", "e": "bcd", "f": "e", "g": "a", "h": "g"}.items():
        after(jobs[child], *(jobs[each] for each in parents))
    after(jobs["e"], outside)
    after(jobs["i"], jobs["f"], jobs["h"], join="all")
    after(jobs["j"], jobs["f"], condition="failure")
    after(jobs["k"], jobs["e"], jobs["h"], condition="always")
    after(jobs["l"], jobs["i"], jobs["c"], join="any")
    started = now - timedelta(minutes=12)
    run, _new = run_job(job=jobs["a"], by=person(ada), now=started, trigger="manual")
    assert run.batch is not None
    return ada, jobs, run.batch


def under_way(now: datetime, jobs: dict[str, Job], batch: Batch) -> None:
    times: dict[str, Any] = {"started_at": now - timedelta(minutes=9)}
    end(batch, jobs["a"], "succeeded", now, **times)
    for key, state in {"b": "succeeded", "c": "succeeded", "d": "failed", "g": "retry_wait"}.items():
        why: dict[str, Any] = {"reason": "exit_nonzero", "detail": {"exit_code": 3}} if state != "succeeded" else {}
        retry_at = now + timedelta(minutes=4) if state == "retry_wait" else None
        end(batch, jobs[key], state, now, **why, **times, retry_at=retry_at)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("theme", "language", "size"), LOOKS)
def test_a_batch_of_twelve_jobs_fits_its_screen(
    open_page: OpenPage,
    take_screenshot: Callable[[Page, str], Path],
    now: datetime,
    theme: str,
    language: str,
    size: dict[str, int],
) -> None:
    ada, jobs, batch = twelve(now)
    under_way(now, jobs, batch)

    page = open_page(f"/batches/{batch.pk}/", ada, theme=theme, language=language, size=size)

    expect(page.locator(".claw-node")).to_have_count(13)
    take_screenshot(page, f"batch-{theme}-{language}-{size['width']}")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    job = jobs["e"].pk
    for name, path in {"batches": "/batches/", "follows": f"/jobs/{job}/dependencies/", "job": f"/jobs/{job}/"}.items():
        page.goto(path)
        take_screenshot(page, f"{name}-{theme}-{language}-{size['width']}")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, name


@pytest.mark.django_db(transaction=True)
def test_the_graph_follows_the_runs_and_leads_to_them(open_page: OpenPage, now: datetime) -> None:
    ada, jobs, batch = twelve(now)
    page = open_page(f"/batches/{batch.pk}/", ada)
    first = page.locator('.claw-node[data-node="Find shops"]')
    expect(first).to_have_attribute("data-state", "queued")
    node = page.locator(f"#node-{jobs['b'].pk}")
    node.focus()

    end(batch, jobs["a"], "succeeded", now)

    expect(first).to_have_attribute("data-state", "succeeded")
    expect(page.locator('.claw-node[data-node="Prices north"]')).to_have_attribute("data-state", "queued")
    expect(page.locator('.claw-node[data-node="Stock"] .claw-node-state')).to_contain_text("Queued")
    # Who goes through the graph by keyboard is not thrown out of it.
    expect(node).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{run_of(batch, jobs['b']).pk}/"))
    page.locator("#run-head").get_by_role("link", name=f"#{batch.pk}").click()
    expect(page).to_have_url(re.compile(f"/batches/{batch.pk}/"))


@pytest.mark.django_db(transaction=True)
def test_a_batch_is_stopped_and_taken_up_again_by_its_buttons(
    open_page: OpenPage, take_screenshot: Callable[[Page, str], Path], now: datetime
) -> None:
    ada, jobs, batch = twelve(now)
    end(batch, jobs["a"], "succeeded", now)
    page = open_page(f"/batches/{batch.pk}/", ada)

    page.get_by_role("button", name="Stop batch").click()
    page.locator("#confirm-yes").click()
    expect(page.locator('.claw-node[data-node="Prices east"]')).to_have_attribute("data-state", "canceled")
    settle(batch_id=batch.pk, now=now)
    page.reload()
    take_screenshot(page, "batch-stopped")
    page.get_by_role("button", name="Run again from the failed one").click()

    expect(page.get_by_text("Goes on from")).to_be_visible()
    expect(page.locator('.claw-node[data-node="Find shops"]')).to_have_class(re.compile("claw-node-settled"))
    expect(page.locator('.claw-node[data-node="Prices east"]')).to_have_attribute("data-state", "queued")
    take_screenshot(page, "batch-again")


@pytest.mark.django_db(transaction=True)
def test_what_a_job_follows_is_chosen_and_a_circle_refused(open_page: OpenPage, now: datetime) -> None:
    ada = AdminFactory(username="ada")
    fetch, clean = jobs_of("fetch", "clean")
    page = open_page(f"/jobs/{clean.pk}/dependencies/", ada)
    page.get_by_label("It runs after").select_option("fetch")
    page.get_by_role("button", name="Another one").click()
    expect(page.get_by_label("and after")).to_be_visible()
    page.get_by_label("any of them").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#follows")).to_contain_text("fetch (when it succeeds)")

    page.goto(f"/jobs/{fetch.pk}/dependencies/")
    page.get_by_label("It runs after").select_option("clean")
    page.get_by_role("button", name="Save").click()

    expect(page.locator(".invalid-feedback")).to_contain_text("fetch → clean → fetch")
    expect(page.get_by_label("It runs after")).to_have_attribute("aria-invalid", "true")
