"""The API's own page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import OpenPage
from tests.factories import AdminFactory

pytestmark = pytest.mark.browser


def test_the_page_of_the_api_lists_what_it_can_do(open_page: OpenPage, take_screenshot: Any) -> None:
    page = open_page("/api/docs/", AdminFactory())
    page.get_by_text("/api/v1/jobs/{id}/run/").wait_for()
    page.get_by_text("/api/v1/runs/{id}/log/").click()
    page.get_by_text("This level and above, by name or number.").wait_for()
    take_screenshot(page, "api")
