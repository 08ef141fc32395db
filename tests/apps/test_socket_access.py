"""Who may open which websocket: the same people as for the pages, see test_access_matrix.py."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.urls import URLPattern

from apps.accounts.rights import grant
from apps.accounts.services import create_token
from apps.runs.models import Run
from apps.runs.states import State
from clawpanel.asgi import application
from clawpanel.routing import websocket_urlpatterns
from tests.apps.runs import test_consumers
from tests.apps.test_same_answer import HOLDERS
from tests.factories import RunFactory, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("_closed")]

_closed = test_consumers._closed
OPEN, NOT_SIGNED_IN, NOT_THERE = 0, 4401, 4404
PEOPLE = ("owner", "member", "stranger", "nobody", "reader")
# As in the matrix of the pages; a token opens no socket.
MATRIX = {
    "ws/runs/": (OPEN, OPEN, OPEN, NOT_SIGNED_IN, NOT_SIGNED_IN),
    "ws/runs/<int:run_id>/log/": (OPEN, NOT_THERE, NOT_THERE, NOT_SIGNED_IN, NOT_SIGNED_IN),
}


@pytest.fixture
def run(transactional_db: None) -> Run:
    return RunFactory(state=State.RUNNING)


@pytest.fixture
def headers(run: Run, now: Any) -> dict[str, list[tuple[bytes, bytes]]]:
    """What each person's request carries."""
    people = {name: UserFactory() for name in PEOPLE[:3]}
    grant(people["owner"], "owner", run.project)
    grant(people["member"], "view", run.project)
    token = create_token(user=people["owner"], name="reader", now=now)[1]
    cookies = {name: test_consumers.session_of(user) for name, user in people.items()}
    carried = {
        name: [(b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode())] for name, cookie in cookies.items()
    }
    return {**carried, "nobody": [], "reader": [(b"authorization", f"Token {token}".encode())]}


async def outcome(path: str, headers: list[tuple[bytes, bytes]]) -> int:
    """0 when the socket stays open, else the code it was closed with."""
    socket = WebsocketCommunicator(application, path, headers=[(b"host", b"panel.test"), *headers])
    accepted, code = await socket.connect(timeout=5)
    if not accepted:
        return int(code or 0)
    try:
        if await socket.receive_nothing(timeout=0.5):
            return OPEN
        message = await socket.receive_output(timeout=5)
        return int(message["code"]) if message["type"] == "websocket.close" else OPEN
    finally:
        await socket.disconnect()


@pytest.mark.parametrize("route", MATRIX)
async def test_everyone_gets_the_right_answer(run: Run, headers: Any, route: str) -> None:
    path = "/" + route.replace("<int:run_id>", str(run.pk))
    assert [await outcome(path, headers[person]) for person in PEOPLE] == list(MATRIX[route])


@pytest.mark.parametrize(("holder", "may"), HOLDERS, ids=lambda part: getattr(part, "__name__", ""))
async def test_a_right_opens_the_log_however_it_is_held(run: Run, holder: Any, may: bool) -> None:
    def prepare() -> tuple[bool, str]:
        user = UserFactory()
        cookie = test_consumers.session_of(user)
        holder(user, run)
        return user.is_active, f"{settings.SESSION_COOKIE_NAME}={cookie}"

    active, cookie = await sync_to_async(prepare)()
    refused = NOT_THERE if active else NOT_SIGNED_IN
    path = f"/ws/runs/{run.pk}/log/"
    assert await outcome(path, [(b"cookie", cookie.encode())]) == (OPEN if may else refused)


def test_every_socket_has_a_row() -> None:
    routes = {str(each.pattern) for each in websocket_urlpatterns if isinstance(each, URLPattern)}
    assert routes - {"<path:unknown>"} == set(MATRIX)
