"""Saying when a job runs, in the browser."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from apps.core.actors import SYSTEM
from apps.jobs.models import Firing, Job, Outcome, Schedule
from apps.jobs.services.schedules import create_schedule
from apps.runs.states import State
from tests.browser.conftest import OpenPage
from tests.browser.gallery import sample_spiders
from tests.factories import AdminFactory, JobFactory, RunFactory

pytestmark = pytest.mark.browser


@pytest.fixture
def a_schedule(transactional_db: None, now: datetime) -> Schedule:
    return create_schedule(job=JobFactory(), by=SYSTEM, now=now, type="cron", cron="0 6 * * *", timezone="UTC")


@pytest.fixture
def slow_runs(a_schedule: Schedule, now: datetime) -> None:
    for _ in range(3):
        RunFactory(job=a_schedule.job, state=State.SUCCEEDED, started_at=now - timedelta(minutes=70), finished_at=now)


def choose(page: Page, kind: str) -> None:
    page.locator(".claw-kind", has_text=kind).click()


def test_a_job_is_given_a_schedule_in_its_form(open_page: OpenPage) -> None:
    sample_spiders()
    page = open_page("/jobs/new/?spider=quotes", AdminFactory())
    preview, times = page.locator("#when-preview"), page.locator(".claw-times tbody tr")
    expect(page.get_by_label("Time zone")).to_be_hidden()

    choose(page, "Monday to Friday")
    page.get_by_label("At", exact=True).fill("09:30")
    expect(preview).to_contain_text("Every weekday at 09:30", ignore_case=True)
    expect(times).to_have_count(10)
    page.get_by_label("Time zone").fill("Asia/Shanghai")
    expect(page.get_by_role("columnheader", name="For you")).to_be_visible()
    expect(times.first).to_contain_text("09:30")
    expect(times.first).to_contain_text("01:30")

    # The preset has filled in its expression, which can now be changed by hand.
    choose(page, "Cron")
    cron = page.get_by_label("Cron expression")
    expect(cron).to_have_value("30 9 * * 1-5")
    cron.fill("*/20 9-17 * * *")
    expect(preview.locator("code")).to_have_text("*/20 9-17 * * *")
    expect(times.first).to_contain_text(":")

    cron.fill("61 * * * *")
    faults = page.locator("[id='id_when-cron-faults']")
    expect(faults).to_contain_text("Minute")
    expect(times).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("alert").get_by_role("link", name="Cron expression").click()
    expect(page.get_by_label("Cron expression")).to_be_focused()
    expect(faults).to_contain_text("Minute")
    assert not Job.objects.exists()

    page.get_by_label("Cron expression").fill("0 6 * * *")
    expect(faults).to_be_empty()
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/jobs/*/")
    schedule = Schedule.objects.select_related("job").get()
    assert (schedule.expression, schedule.timezone, schedule.job.name) == ("0 6 * * *", "Asia/Shanghai", "Quotes")
    section = page.locator("#schedules")
    expect(section).to_contain_text("every day at 06:00", ignore_case=True)
    expect(section).to_contain_text("22:00")


def test_a_schedule_is_switched_paused_and_resumed(open_page: OpenPage, a_schedule: Schedule) -> None:
    page = open_page(f"/jobs/{a_schedule.job_id}/", AdminFactory(username="grace"))
    section = page.locator("#schedules")
    section.get_by_role("switch").click()
    expect(section.get_by_text("Off", exact=True)).to_be_visible()
    expect(section.get_by_role("switch")).to_have_attribute("aria-checked", "false")
    section.get_by_role("switch").click()
    expect(section.get_by_text("On", exact=True)).to_be_visible()

    section.get_by_text("Pause…").click()
    section.get_by_label("Why").fill("The site is being rebuilt.")
    section.get_by_label("For how long").fill("2h")
    section.get_by_role("button", name="Pause", exact=True).click()
    expect(section).to_contain_text("By grace: The site is being rebuilt.")
    expect(section).to_contain_text("Goes on by itself in 1 h 59 min")
    a_schedule.refresh_from_db()
    assert a_schedule.paused_until is not None
    section.get_by_role("button", name="Resume").click()
    expect(section.get_by_text("On", exact=True)).to_be_visible()


def test_the_ledger_tells_what_became_of_each_time(open_page: OpenPage, a_schedule: Schedule, now: datetime) -> None:
    due = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    for outcome, reason, at in ((Outcome.FIRED, "", due), (Outcome.SKIPPED, "paused", due + timedelta(hours=1))):
        Firing.objects.create(
            job=a_schedule.job, schedule=a_schedule, scheduled_for=at, outcome=outcome, reason=reason, decided_at=at
        )
    page = open_page(f"/jobs/{a_schedule.job_id}/", AdminFactory())
    page.get_by_role("link", name="Ledger").click()
    rows = page.locator("table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("The schedule was paused.")
    page.get_by_label("Outcome").select_option("fired")
    expect(rows).to_have_count(1)
    page.get_by_label("At what time?").fill(f"{due + timedelta(hours=1):%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".claw-answers")).to_contain_text("The schedule was paused.")


def test_a_clock_change_is_marked_among_the_next_times(open_page: OpenPage, a_schedule: Schedule) -> None:
    page = open_page(f"/schedules/{a_schedule.pk}/edit/", AdminFactory())
    page.get_by_label("Time zone").fill("Europe/Berlin")
    choose(page, "Cron")
    page.get_by_label("Cron expression").fill("30 2 25-31 3 *")
    expect(page.locator(".claw-clock-change").first).to_contain_text("clock change")


def test_runs_that_take_longer_than_the_interval_are_warned_of(
    open_page: OpenPage, a_schedule: Schedule, slow_runs: None
) -> None:
    page = open_page(f"/schedules/{a_schedule.pk}/edit/", AdminFactory())
    choose(page, "Every …")
    page.get_by_label("Every", exact=True).fill("5 min")
    expect(page.locator("#when-preview")).to_contain_text("on average")
    page.get_by_label("Every", exact=True).fill("2h")
    expect(page.locator("#when-preview")).not_to_contain_text("on average")


def test_all_scheduling_is_switched_off_and_on(open_page: OpenPage, a_schedule: Schedule) -> None:
    page = open_page("/schedules/", AdminFactory(username="grace"))
    page.get_by_role("link", name="Switch all off").click()
    page.get_by_label("Why").fill("The network is rewired.")
    page.get_by_role("button", name="Switch off").click()
    banner = page.get_by_text("All scheduling is off")
    expect(banner.locator("..")).to_contain_text("The network is rewired.")
    expect(banner.locator("..")).to_contain_text("grace")
    page.get_by_role("button", name="Switch scheduling on").click()
    expect(banner).to_have_count(0)
