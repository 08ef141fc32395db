"""Making a job in the browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from apps.jobs.models import Job
from apps.runs.models import Run
from tests.browser.conftest import OpenPage
from tests.browser.gallery import sample_spiders
from tests.factories import AdminFactory

pytestmark = pytest.mark.browser


def test_a_job_is_made_from_a_card_and_run(open_page: OpenPage) -> None:
    sample_spiders()
    page = open_page("/jobs/new/", AdminFactory())
    page.get_by_label("Quotes").check()
    page.get_by_label("Pages at most").fill("7")
    page.get_by_label("Books").check()
    expect(page.get_by_label("Keywords").first).to_be_visible()
    expect(page.get_by_label("Pages at most")).to_have_value("7")
    page.get_by_label("Name", exact=True).fill("Sea books")
    page.locator("[data-schema-list] input").first.fill("sea")
    page.get_by_role("button", name="Save and run now").click()
    page.wait_for_url("**/runs/*/")
    job = Job.objects.get()
    assert (job.name, job.spider.name) == ("Sea books", "books")
    assert job.parameters["keywords"] == ["sea"]
    assert job.parameters["max_pages"] == 7
    assert Run.objects.get().job == job


def test_faults_lead_to_their_fields(open_page: OpenPage) -> None:
    sample_spiders()
    page = open_page("/jobs/new/?spider=books", AdminFactory())
    page.get_by_label("Pages at most").fill("500")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Nothing was saved yet")).to_be_visible()
    page.get_by_role("alert").get_by_role("link", name="Pages at most").click()
    assert not Job.objects.exists()
    expect(page.get_by_label("Pages at most")).to_have_value("500")


def test_sections_open_where_a_fault_is_and_show_what_a_choice_needs(open_page: OpenPage) -> None:
    sample_spiders()
    page = open_page("/jobs/new/?spider=quotes", AdminFactory())
    attempts = page.get_by_label("Attempts", exact=True)
    expect(attempts).to_be_hidden()
    page.get_by_role("heading", name="When it fails").click()
    attempts.fill("3")
    expect(page.get_by_label("Growth")).to_be_visible()
    page.get_by_label("Between attempts").select_option("list")
    expect(page.get_by_label("Growth")).to_be_hidden()
    expect(page.get_by_label("First pause")).to_be_hidden()
    page.get_by_label("Pauses, one after the other").fill("30s, soon")
    page.get_by_role("heading", name="Overlap and limits").click()
    expect(page.get_by_label("At most", exact=True)).to_be_hidden()
    page.get_by_label("When it is active already").select_option("queue")
    page.get_by_label("At most", exact=True).fill("2")
    page.get_by_role("button", name="Save", exact=True).click()

    page.get_by_role("alert").get_by_role("link", name="Pauses, one after the other").click()
    expect(page.get_by_label("Pauses, one after the other")).to_have_value("30s, soon")
    expect(page.get_by_text("Enter a duration such as").last).to_be_visible()
    page.get_by_label("Pauses, one after the other").fill("30s, 5m, 1h")
    page.get_by_role("button", name="Save", exact=True).click()

    page.wait_for_url("**/jobs/*/")
    expect(page.get_by_text("Tries again up to 2 times, after 30s, 5m.")).to_be_visible()
    job = Job.objects.get()
    assert (job.overlap, job.overlap_max, job.retry["delays"]) == ("queue", 2, [30, 300, 3600])


def test_what_was_typed_in_the_sections_stays_when_another_spider_is_chosen(open_page: OpenPage) -> None:
    sample_spiders()
    page = open_page("/jobs/new/?spider=quotes", AdminFactory())
    page.get_by_role("heading", name="When it fails").click()
    page.get_by_label("Attempts", exact=True).fill("7")
    page.get_by_label("it runs out of memory").uncheck()
    page.get_by_label("Books").check()
    expect(page.get_by_label("Keywords").first).to_be_visible()
    page.get_by_role("heading", name="When it fails").click()
    expect(page.get_by_label("Attempts", exact=True)).to_have_value("7")
    expect(page.get_by_label("it runs out of memory")).not_to_be_checked()
