"""Coming in through the browser."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenPage
from tests.factories import AdminFactory

pytestmark = pytest.mark.browser


def test_a_person_signs_in_and_sees_the_runs(open_page: OpenPage) -> None:
    AdminFactory(username="ada", password="correct horse battery")
    page = open_page("/")
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/runs/")
    assert page.get_by_role("heading", name="Runs").is_visible()
