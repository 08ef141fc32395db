"""The run list lives: states change, new runs announce themselves, nothing moves under the mouse."""

from __future__ import annotations

from datetime import datetime

import pytest
from playwright.sync_api import expect

from apps.core.actors import SYSTEM
from apps.runs import live
from apps.runs.models import Run
from apps.runs.services import move
from apps.runs.states import State
from tests.browser.conftest import PHONE, OpenPage
from tests.factories import AdminFactory, JobFactory, NodeFactory, RunFactory

pytestmark = pytest.mark.browser


def test_a_run_that_ends_changes_its_row_without_a_reload(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, started_at=now)
    page = open_page("/runs/", AdminFactory())
    row = page.locator(f"#run-{run.pk}")
    expect(row).to_contain_text("Running")
    page.evaluate("window.untouched = true")
    move(run_id=run.pk, to=State.FAILED, frm=(State.RUNNING,), now=now, actor=SYSTEM, reason="oom", finished_at=now)
    live.notice(run.pk, State.FAILED)
    expect(row).to_contain_text("Failed")
    expect(row).to_contain_text("Out of memory")
    expect(row.get_by_role("button", name="Run again")).to_be_visible()
    assert page.evaluate("window.untouched") is True


def test_new_runs_are_announced_and_shown_on_demand(open_page: OpenPage) -> None:
    old = RunFactory(state=State.SUCCEEDED)
    page = open_page("/runs/", AdminFactory())
    fresh = RunFactory(state=State.QUEUED)
    # The socket may still be connecting: a hint that nobody hears is repeated as a worker's next one would be.
    for _ in range(20):
        live.notice(fresh.pk, State.QUEUED)
        if page.locator("#new-runs").is_visible():
            break
        page.wait_for_timeout(250)
    expect(page.locator("#new-runs")).to_contain_text("1 new run")
    expect(page.locator("tbody tr").first).to_have_attribute("id", f"run-{old.pk}")
    page.locator("#new-runs").click()
    expect(page.locator("tbody tr").first).to_have_attribute("id", f"run-{fresh.pk}")


def test_running_time_ticks(open_page: OpenPage, now: datetime) -> None:
    RunFactory(state=State.RUNNING, started_at=now)
    page = open_page("/runs/", AdminFactory())
    before = page.locator(".claw-ticks").inner_text()
    expect(page.locator(".claw-ticks")).not_to_have_text(before, timeout=5000)


def test_stop_asks_and_names_the_run(open_page: OpenPage) -> None:
    keep, stop = RunFactory(state=State.QUEUED), RunFactory(state=State.QUEUED, job=JobFactory(name="Weather"))
    page = open_page("/runs/?state=active", AdminFactory())
    button = page.locator(f"#run-{stop.pk}").get_by_role("button", name="Stop")
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Stop run #{stop.pk} of Weather?")
    dialog.get_by_role("button", name="Cancel").click()
    assert Run.objects.get(pk=stop.pk).state == State.QUEUED
    button.click()
    dialog.get_by_role("button", name="Stop").click()
    expect(page.locator(f"#run-{stop.pk}")).to_have_count(0)
    assert Run.objects.get(pk=stop.pk).state == State.CANCELED
    assert Run.objects.get(pk=keep.pk).state == State.QUEUED


def test_the_answer_counts_though_the_live_page_replaced_the_button_meanwhile(open_page: OpenPage) -> None:
    run = RunFactory(state=State.QUEUED)
    page = open_page("/runs/?state=active", AdminFactory())
    page.locator(f"#run-{run.pk}").get_by_role("button", name="Stop").click()
    page.evaluate(
        "(row) => { const old = document.getElementById(row); old.replaceWith(old.cloneNode(true)) }", f"run-{run.pk}"
    )
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator(f"#run-{run.pk}")).to_have_count(0)
    assert Run.objects.get(pk=run.pk).state == State.CANCELED


def test_filters_apply_at_once_and_live_in_the_address(open_page: OpenPage) -> None:
    RunFactory(state=State.SUCCEEDED)
    failed = RunFactory(state=State.FAILED)
    page = open_page("/runs/", AdminFactory())
    page.get_by_text("Status", exact=True).first.click()
    page.locator("input[name=state][value=failed]").check()
    page.wait_for_url("**state=failed**")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator(f"#run-{failed.pk}")).to_be_visible()
    page.get_by_title("Remove this filter").click()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_on_a_phone_the_menu_opens_and_rows_are_cards(open_page: OpenPage) -> None:
    NodeFactory(isolated=True)
    RunFactory(state=State.SUCCEEDED)
    page = open_page("/runs/", AdminFactory(), size=PHONE)
    assert not page.locator("#sidebar").is_visible()
    page.get_by_role("button", name="Menu").click()
    page.locator("#sidebar").get_by_text("Spiders").click()
    page.wait_for_url("**/spiders/")


def test_theme_and_language_are_switched_from_the_top(open_page: OpenPage) -> None:
    page = open_page("/runs/", AdminFactory())
    page.get_by_label("Theme").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.get_by_label("Language").click()
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator("h1")).to_have_text("运行")
