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
    page.get_by_label("Name").fill("Sea books")
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
