"""The live log over a real websocket stack, a real Valkey and a real PostgreSQL."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings as django_settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.test import Client

from apps.accounts import rights
from apps.accounts.models import User
from apps.runs import consumers, live
from apps.runs.live import feed, publish
from apps.runs.models import Run
from apps.runs.states import State
from clawpanel.asgi import application
from tests.apps.runs.logged import row, store_rows
from tests.factories import RunFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
Socket = Callable[..., Any]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same clockwork, faster."""
    monkeypatch.setattr(consumers, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(feed, "POLL_SECONDS", 0.3)
    monkeypatch.setattr(feed, "POLL_SECONDS_WITHOUT_HINTS", 0.1)
    monkeypatch.setattr(feed, "BLOCK_MS", 50)


@pytest.fixture
async def _closed() -> AsyncIterator[None]:
    """Connections left in worker threads would keep the test database from being dropped."""
    threads = 4
    pool = ThreadPoolExecutor(threads)
    asyncio.get_running_loop().set_default_executor(pool)
    yield
    await sync_to_async(connections.close_all)()
    together = threading.Barrier(threads)

    def close() -> None:
        together.wait(5)
        connections.close_all()

    await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(pool, close) for _ in range(threads)))


@pytest.fixture
def run(transactional_db: None) -> Run:
    made: Run = RunFactory(state=State.RUNNING)
    return made


@pytest.fixture
def viewer(run: Run) -> User:
    user: User = UserFactory()
    for action in ("view", "view_log"):
        rights.grant(user, action, run.job)
    return user


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user, backend=BACKEND)
    return client.cookies[django_settings.SESSION_COOKIE_NAME].value


def communicator(path: str, session: str = "", origin: str = "http://panel.test") -> WebsocketCommunicator:
    headers = [(b"host", b"panel.test"), (b"origin", origin.encode())]
    if session:
        headers.append((b"cookie", f"{django_settings.SESSION_COOKIE_NAME}={session}".encode()))
    return WebsocketCommunicator(application, path, headers=headers)


@asynccontextmanager
async def opened(path: str, session: str = "") -> AsyncIterator[WebsocketCommunicator]:
    socket = communicator(path, session)
    accepted, _protocol = await socket.connect(timeout=5)
    assert accepted
    try:
        yield socket
    finally:
        await socket.disconnect()


async def frame(socket: WebsocketCommunicator, seconds: float = 5) -> dict[str, Any]:
    got: dict[str, Any] = orjson.loads(await socket.receive_from(timeout=seconds))
    return got


async def close_code(socket: WebsocketCommunicator, seconds: float = 5) -> int:
    """Everything up to the close is let through."""
    while True:
        message = await socket.receive_output(timeout=seconds)
        if message["type"] == "websocket.close":
            return int(message["code"])


async def lines_until(socket: WebsocketCommunicator, done: Callable[[list[int]], bool]) -> list[int]:
    """Line numbers as they come, each frame acknowledged."""
    found: list[int] = []
    while not done(found):
        got = await frame(socket)
        if got["t"] == "end":
            break
        if got["t"] == "lines":
            found += [each[0] for each in got["rows"]]
            await socket.send_to(orjson.dumps({"t": "ack", "line": found[-1]}).decode())
    return found


def stored(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Awaitable[Any]:
    return sync_to_async(call)(*args, **kwargs)


def path_of(run: Run, after: int = 0) -> str:
    return f"/ws/runs/{run.pk}/log/?after={after}"


@pytest.mark.usefixtures("_closed")
@pytest.mark.parametrize("seed", range(4))
async def test_no_line_is_missing_or_double_while_pages_open_and_hints_get_lost(
    run: Run, viewer: User, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 (not for secrets)
    session = await stored(session_of, viewer)
    await stored(store_rows, run, [row(line) for line in range(1, 301)], [100, 100])

    async def crawl() -> None:
        line = 301
        for _window in range(25):
            rows = [row(n) for n in range(line, line + dice.randint(1, 40))]
            line += len(rows)
            await stored(store_rows, run, rows)
            if dice.random() < 0.7:
                await stored(live.publish_lines, run.pk, rows)
            if dice.random() < 0.2:
                await stored(live.publish_lines, run.pk, rows)
            await asyncio.sleep(dice.random() * 0.05)
        await stored(Run.objects.filter(pk=run.pk).update, state=State.SUCCEEDED)
        await stored(live.publish_state, run.pk, {"state": "succeeded"})

    crawling = asyncio.create_task(crawl())
    await asyncio.sleep(dice.random() * 0.3)
    after = dice.choice([0, 17, 250])
    async with opened(path_of(run, after), session) as socket:
        found = await lines_until(socket, lambda _found: False)
    await crawling
    await stored(run.refresh_from_db)

    assert found == list(range(after + 1, run.lines + 1))


@pytest.mark.usefixtures("_closed")
async def test_a_finished_run_says_hello_sends_its_log_and_ends(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    await stored(store_rows, run, [row(1, "one"), row(2, "two", 40)])
    await stored(Run.objects.filter(pk=run.pk).update, state=State.FAILED)

    async with opened(path_of(run), session) as socket:
        frames = [await frame(socket) for _ in range(4)]

    assert [each["t"] for each in frames] == ["hello", "run", "lines", "end"]
    assert frames[0] == {"t": "hello", "state": "failed", "last": 2}
    assert [each[1:] for each in frames[2]["rows"]] == [[row(1)[1], 20, "one"], [row(2)[1], 40, "two"]]
    assert frames[3]["last"] == 2


@pytest.mark.usefixtures("_closed")
async def test_a_browser_that_saw_a_gap_gets_the_lines_again(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    await stored(store_rows, run, [row(line) for line in range(1, 51)], [20])

    async with opened(path_of(run), session) as socket:
        first = await lines_until(socket, lambda found: len(found) == 50)
        await socket.send_to('{"t":"from","after":30}')
        again = await lines_until(socket, lambda found: len(found) == 20)

    assert first == list(range(1, 51))
    assert again == list(range(31, 51))


@pytest.mark.usefixtures("_closed")
async def test_a_slow_reader_gets_at_most_its_credit_and_goes_on_after_an_ack(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    await stored(store_rows, run, [row(line, "x" * 2000) for line in range(1, 2001)], [250] * 8)

    async with opened(path_of(run), session) as socket:
        taken, last = 0, 0
        while not await socket.receive_nothing(timeout=0.7):
            text = await socket.receive_from()
            if text.startswith('{"t":"lines"'):
                taken, last = taken + len(text), orjson.loads(text)["rows"][-1][0]
        assert 800_000 < taken < 1_100_000
        await socket.send_to(orjson.dumps({"t": "ack", "line": last}).decode())
        rest = await lines_until(socket, lambda found: bool(found) and found[-1] == 2000)

    assert rest == list(range(last + 1, 2001))


@pytest.mark.usefixtures("_closed")
async def test_frames_stay_small(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    await stored(store_rows, run, [row(line, "y" * 500) for line in range(1, 1001)])

    async with opened(path_of(run), session) as socket:
        sizes = []
        while sum(sizes) < 500_000:
            text = await socket.receive_from(timeout=5)
            sizes.append(len(text))

    assert max(sizes) < 80_000


@pytest.mark.usefixtures("_closed")
async def test_the_unfinished_line_is_shown_and_taken_away(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    async with opened(path_of(run), session) as socket:
        assert (await frame(socket))["t"] == "hello"
        await stored(live.publish_partial, run.pk, "50 %")
        while (got := await frame(socket))["t"] != "partial":
            pass

    assert got["text"] == "50 %"


@pytest.mark.usefixtures("_closed")
async def test_without_valkey_lines_still_arrive_and_publishing_does_not_raise(
    run: Run, viewer: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await stored(session_of, viewer)
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    monkeypatch.setattr(publish, "_publisher", publish._Publisher())

    async with opened(path_of(run), session) as socket:
        for line in range(1, 6):
            await stored(store_rows, run, [row(line)])
            await stored(live.publish_lines, run.pk, [row(line)])
            live.notice(run.pk, "running")
            await asyncio.sleep(0.05)
        found = await lines_until(socket, lambda found: len(found) == 5)

    assert found == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("_closed")
async def test_who_is_not_signed_in_gets_4401(run: Run) -> None:
    async with opened(path_of(run)) as socket:
        assert await close_code(socket) == 4401
    async with opened("/ws/runs/") as socket:
        assert await close_code(socket) == 4401
    async with opened(path_of(run), "forged-session-key") as socket:
        assert await close_code(socket) == 4401


@pytest.mark.usefixtures("_closed")
async def test_a_stranger_and_one_without_the_log_right_get_4404(run: Run) -> None:
    user = await stored(UserFactory)
    session = await stored(session_of, user)
    async with opened(path_of(run), session) as socket:
        assert await close_code(socket) == 4404
    await stored(rights.grant, user, "view", run.job)
    async with opened(path_of(run), session) as socket:
        assert await close_code(socket) == 4404
    async with opened("/ws/runs/999999999/log/", session) as socket:
        assert await close_code(socket) == 4404


@pytest.mark.usefixtures("_closed")
@pytest.mark.parametrize(
    ("loss", "code"),
    [
        ("right", 4403),
        ("sign-out", 4401),
        ("deactivation", 4401),
        ("password", 4401),
        ("expiry", 4401),
    ],
)
async def test_a_socket_ends_soon_after_its_right_or_session(run: Run, viewer: User, loss: str, code: int) -> None:
    session = await stored(session_of, viewer)

    def lose() -> None:
        if loss == "right":
            rights.revoke(viewer, "view_log", run.job)
        elif loss == "sign-out":
            SessionStore(session).delete()
        elif loss == "deactivation":
            User.objects.filter(pk=viewer.pk).update(is_active=False)
        elif loss == "password":
            viewer.set_password("another-password")
            viewer.save()
        else:
            store = SessionStore(session)
            store.set_expiry(-1)
            store.save()

    async with opened(path_of(run), session) as socket:
        assert (await frame(socket))["t"] == "hello"
        await stored(lose)
        assert await close_code(socket) == code
        await stored(store_rows, run, [row(1, "not for these eyes")])
        await stored(live.publish_lines, run.pk, [row(1, "not for these eyes")])
        assert await socket.receive_nothing(timeout=0.5)


@pytest.mark.usefixtures("_closed")
async def test_another_sites_page_is_refused(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    accepted, _code = await communicator(path_of(run), session, origin="http://evil.test").connect()

    assert not accepted


@pytest.mark.usefixtures("_closed")
@pytest.mark.parametrize("text", ["no json", "[]", '{"t":"ack"}', '{"t":"from","after":null}', '"x"', "{}"])
async def test_a_broken_frame_ends_the_socket_or_is_harmless(run: Run, viewer: User, text: str) -> None:
    session = await stored(session_of, viewer)
    async with opened(path_of(run), session) as socket:
        assert (await frame(socket))["t"] == "hello"
        await socket.send_to(text)
        await stored(store_rows, run, [row(1)])
        await stored(live.publish_lines, run.pk, [row(1)])
        while True:
            message = await socket.receive_output(timeout=5)
            if message["type"] == "websocket.close":
                assert message["code"] == 4400
                break
            if '"t":"lines"' in message["text"]:
                break


@pytest.mark.usefixtures("_closed")
async def test_a_list_hears_only_of_runs_its_reader_may_see(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    other = await stored(RunFactory)

    async with opened("/ws/runs/", session) as socket:
        await asyncio.sleep(0.3)
        for _attempt in range(3):
            await stored(live.notice, other.pk, "running")
            await stored(live.notice, run.pk, "stopping")
        got = await frame(socket)
        nothing = await socket.receive_nothing(timeout=0.7)

    assert got == {"t": "run", "id": run.pk, "state": "stopping"}
    assert nothing


@pytest.mark.usefixtures("_closed")
async def test_many_viewers_of_a_run_share_one_reader(run: Run, viewer: User) -> None:
    session = await stored(session_of, viewer)
    async with opened(path_of(run), session) as one, opened(path_of(run), session) as two:
        assert (await frame(one))["t"] == "hello"
        assert (await frame(two))["t"] == "hello"
        feeds = feed._feeds[asyncio.get_running_loop()]
        assert list(feeds) == [run.pk]
        assert len(feeds[run.pk].watchers) == 2
    await asyncio.sleep(0.1)

    assert feeds == {}
