"""What all tests share, and how a test that needs a part of the machine is skipped, or under CI refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from functools import cache

import docker
import pytest
import pytest_django
from django.db import connection
from docker.errors import DockerException
from playwright.sync_api import Browser, sync_playwright

CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
APT = "as root on Debian deploy/test installs it, or: apt-get install -y {}"


@cache
def docker_trouble() -> str:
    """Why tests with containers cannot run here, and what to do; empty when they can."""
    try:
        client = docker.from_env(timeout=10)
        client.ping()
        client.close()
    except DockerException as error:
        return f"no Docker engine answers ({type(error).__name__}): {APT.format('docker.io iptables')}"
    return ""


@cache
def browser_trouble() -> str:
    if any(shutil.which(name) for name in CHROMIUM_NAMES):
        return ""
    return f"no Chromium: {APT.format('chromium fonts-noto-cjk')}"


TROUBLES = {"docker": docker_trouble, "browser": browser_trouble}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker, trouble in TROUBLES.items():
            if item.get_closest_marker(marker) and (reason := trouble()):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under CI a skip is a failure: a test that does not run proves nothing."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"Skipped although CI is set: {reason}"
    return report


@pytest.fixture
def now() -> datetime:
    """An instant of real time: the database compares with its own clock."""
    return datetime.now(UTC)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker) -> None:
    """knox leaves its own, unused token table behind; it refers to users, so emptying tables would be refused."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS knox_authtoken")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser; mark the test `browser`."""
    return next(path for name in CHROMIUM_NAMES if (path := shutil.which(name)))


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """One for all tests: Playwright's synchronous API can be entered once a thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
