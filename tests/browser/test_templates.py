"""Typing a template into the form of a job, in the browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from apps.jobs.models import Job
from tests.browser.conftest import OpenPage
from tests.factories import AdminFactory, SpiderFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCHEMA = {
    "type": "object",
    "x-order": ["since", "pages", "deep", "size"],
    "properties": {
        "since": {"type": "string", "format": "date", "title": "Since"},
        "pages": {"type": "integer", "title": "Pages"},
        "deep": {"type": "boolean", "title": "Deep"},
        "size": {"enum": ["small", "large"], "title": "Size"},
    },
}


def test_every_kind_of_box_takes_a_template_and_its_value_is_shown(open_page: OpenPage, now: object) -> None:
    spider = SpiderFactory(kind="command", name="dated", version__parameter_schema=SCHEMA, version__command=["crawl"])
    page = open_page(f"/jobs/new/?spider={spider.name}", AdminFactory())
    preview = page.locator("#parameter-preview")

    page.get_by_role("button", name="Template (Since)").click()
    expect(page.get_by_label("Since")).to_be_focused()
    page.keyboard.type("yesterday")
    expect(page.get_by_label("Since")).to_have_value("{{ yesterday }}")
    expect(preview).to_contain_text("{{ yesterday }} → 20")

    page.get_by_label("Pages").fill("{{ today }}")
    expect(preview).to_contain_text("whole number")
    page.get_by_label("Pages").fill('{{ today | date:"%d" }}')
    expect(preview).not_to_contain_text("whole number")
    page.get_by_role("button", name="Template (Deep)").click()
    page.get_by_label("Deep").fill("{{ 'true' }}")
    page.get_by_text("Arguments and calls").click()
    page.get_by_label("Arguments", exact=True).fill("--since={{ params.since }}\n--at={{ node.name }}")
    expect(preview).to_contain_text("known only in the run")
    if folder := os.environ.get("LOOKS"):
        page.screenshot(path=str(Path(folder) / "templates.png"), full_page=True)

    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/jobs/*/")
    job = Job.objects.get()
    assert job.parameters == {"since": "{{ yesterday }}", "pages": '{{ today | date:"%d" }}', "deep": "{{ 'true' }}"}
    assert job.arguments == ["--since={{ params.since }}", "--at={{ node.name }}"]
