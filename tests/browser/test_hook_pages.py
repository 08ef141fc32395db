"""Webhooks in a browser: made, copied, called and revoked."""

from __future__ import annotations

import re
import uuid

import pytest
import requests
from playwright.sync_api import Page, expect

from apps.jobs.models import Hook
from tests.browser.conftest import PHONE, OpenPage
from tests.factories import AdminFactory, JobFactory, SpiderFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCHEMA = {"type": "object", "properties": {"max_pages": {"type": "integer", "default": 3}}}


def test_a_hook_is_made_copied_called_and_revoked(open_page: OpenPage) -> None:
    job = JobFactory(name="quotes nightly", spider=SpiderFactory(version__parameter_schema=SCHEMA))
    page = open_page(f"/jobs/{job.pk}/", AdminFactory())
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_role("link", name="New webhook").first.click()
    page.get_by_label("Name").fill("build server")
    page.get_by_label("Proof").select_option("url")
    page.get_by_role("button", name="Make the webhook").click()
    address = page.get_by_label("Address").input_value()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == address
    assert requests.post(address, json={"max_pages": "2"}, timeout=30).status_code == 202

    page.get_by_role("link", name="I have copied it").click()
    row = page.get_by_role("row").filter(has_text="build server")
    expect(row).not_to_contain_text("never")
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("Revoke “build server”?")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("its address is unknown now")).to_be_visible()
    assert requests.post(address, json={}, timeout=30).status_code == 404
    assert Hook.objects.get().revoked_at is not None

    # In the same test: the server remembers ids of content types, which are made anew between tests.
    for theme in ("light", "dark"):
        nothing_is_wider_than_a_phone(open_page(f"/jobs/{job.pk}/hooks/new/", AdminFactory(), theme=theme, size=PHONE))


def nothing_is_wider_than_a_phone(page: Page) -> None:
    name = uuid.uuid4().hex * 3
    page.get_by_label("Name").fill(name)
    page.get_by_label("Where parameters stand").fill("max_pages = " + ".".join(["event"] * 30))
    page.get_by_role("button", name="Make the webhook").click()
    expect(page.get_by_label("Key of the signature")).to_have_value(re.compile("^[0-9a-f]{64}$"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_role("button", name=f"Revoke {name}")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
