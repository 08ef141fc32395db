"""A real panel over a real socket, and a real browser in front of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import pytest
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from apps.accounts.models import User

# Playwright's synchronous API keeps an event loop in this thread; Django would refuse the ORM beside it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

ROOT = Path(__file__).resolve().parent.parent.parent
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

OpenPage = Callable[..., Page]


def free_port() -> int:
    """Below the range from which the kernel takes ports for outgoing connections."""
    for port in range(18000 + os.getpid() % 4000, 32000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")


def database_url() -> str:
    """The URL the server process needs to see the rows of the tests."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path="/" + quote(connection.settings_dict["NAME"])))


def wait_for(url: str, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"{url} did not answer within {seconds} s")


@pytest.fixture(scope="session")
def panel_url(
    django_db_setup: None, django_db_blocker: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Daphne on the test database; tests that want their rows seen are `django_db(transaction=True)`."""
    port = free_port()
    log = tmp_path_factory.mktemp("daphne") / "log"
    environment = {**os.environ, "DATABASE_URL": database_url(), "CLAWPANEL_PORT": str(port)}
    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "clawpanel.asgi:application"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/healthz", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        print(log.read_text(errors="replace")[-4000:])


def is_complaint(message: ConsoleMessage) -> bool:
    """A form that is refused (422) is no fault of the page."""
    return message.type == "error" and "status of 422" not in message.text


def sign_in(context: BrowserContext, url: str, user: User) -> None:
    """A session made past the sign-in page, which has its own test."""
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])


_KINDS: dict[tuple[str, str], int] = {}


@pytest.fixture
def same_content_types(transactional_db: None) -> None:
    """Emptying the tables after a test gives the kinds of objects new numbers; the web server, which outlives a test,
    remembers those of its first."""
    with transaction.atomic(), connection.cursor() as cursor:
        for kind in ContentType.objects.all():
            first = _KINDS.setdefault(kind.natural_key(), kind.pk)
            if first != kind.pk:
                cursor.execute("UPDATE django_content_type SET id = %s WHERE id = %s", [first, kind.pk])
                cursor.execute(
                    "UPDATE auth_permission SET content_type_id = %s WHERE content_type_id = %s", [first, kind.pk]
                )
    ContentType.objects.clear_cache()


@pytest.fixture
def open_page(same_content_types: None, panel_url: str, browser: Browser) -> Iterator[OpenPage]:
    """`open_page("/runs/", user, theme="dark", language="zh-hans", size=PHONE)` -> a Playwright page.

    At the end of the test anything the browser complained about, such as a breach of the CSP, fails it.
    """
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        path: str,
        user: User | None = None,
        *,
        theme: str = "light",
        language: str = "en",
        size: dict[str, int] | None = None,
        scripts: bool = True,
    ) -> Page:
        context = browser.new_context(
            base_url=panel_url,
            viewport=size or DESKTOP,  # type: ignore[arg-type]  # playwright's own TypedDict
            locale=language,
            accept_downloads=True,
            java_script_enabled=scripts,
            color_scheme="dark" if theme == "dark" else "light",
        )
        contexts.append(context)
        context.set_default_timeout(10_000)
        # The browser must not wait for anything outside: there is none in the tests.
        context.route(lambda address: not address.startswith(panel_url), lambda route: route.abort())
        if user is not None:
            User.objects.filter(pk=user.pk).update(language=language, theme=theme)
            sign_in(context, panel_url, user)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints, "the browser complained:\n" + "\n".join(complaints)


@pytest.fixture
def take_screenshot(tmp_path: Path) -> Callable[[Page, str], Path]:
    """Into the folder CLAWPANEL_SCREENSHOTS, else into the test's own."""
    folder = Path(os.environ.get("CLAWPANEL_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def take_screenshot(page: Page, name: str) -> Path:
        path = folder / f"{name}.png"
        page.screenshot(path=path, full_page=True, animations="disabled")
        return path

    return take_screenshot
