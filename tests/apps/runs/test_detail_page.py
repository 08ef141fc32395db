"""The page of a run: who sees what, what it costs, and what it makes of odd values."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts import rights
from apps.accounts.models import User
from apps.runs.models import Run
from apps.runs.states import State
from apps.runs.views.cells import cell_of, link_of
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import AttemptFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db

CASES = Path(__file__).parents[2] / "cases"
TABS = ("log", "data", "metrics", "parameters", "events")
NEEDS = {
    "": "view",
    "?tab=log": "view_log",
    "?tab=data": "view_data",
    "?tab=metrics": "view",
    "head/": "view",
    "log/": "view_log",
    "log/index/": "view_log",
    "run.log": "view_log",
    "items/new/": "view_data",
    "items.csv": "export_data",
    "items.jsonl": "export_data",
    "samples/": "view",
}


@pytest.fixture
def run() -> Run:
    made: Run = RunFactory(state=State.RUNNING)
    store_rows(made, [row(1, "a line"), row(2, "an error", 40)])
    store_items(made, [{"title": "one", "price": 1.5}, {"title": None, "tags": []}])
    return made


@pytest.fixture
def user() -> User:
    made: User = UserFactory()
    return made


@pytest.fixture
def signed_in(client: Client, user: User) -> Client:
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.mark.parametrize("door", NEEDS)
def test_a_door_opens_with_its_right_only(run: Run, user: User, signed_in: Client, door: str) -> None:
    address = f"/runs/{run.pk}/{door}"
    assert signed_in.get(address).status_code == 404
    every = {"view", "view_log", "view_data", "export_data", "stop", "run"}
    for action in every - {NEEDS[door]} - ({"view"} if "?tab" in door else set()):
        rights.grant(user, action, run.job)
    assert signed_in.get(address).status_code == 404
    rights.grant(user, NEEDS[door], run.job)
    if "?tab" in door:
        rights.grant(user, "view", run.job)
    assert signed_in.get(address).status_code == 200


@pytest.mark.parametrize("door", NEEDS)
def test_who_is_not_signed_in_is_sent_to_the_sign_in_page(run: Run, client: Client, door: str) -> None:
    answer = client.get(f"/runs/{run.pk}/{door}")

    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("door", ["stop", "rerun"])
def test_a_viewer_can_neither_stop_nor_run_again(run: Run, user: User, signed_in: Client, door: str) -> None:
    rights.grant(user, "viewer", run.job)

    assert signed_in.post(f"/runs/{run.pk}/{door}/").status_code == 404
    assert f"/runs/{run.pk}/{door}/" not in signed_in.get(f"/runs/{run.pk}/").content.decode()


def test_stop_is_asked_by_a_form_only(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "operator", run.job)

    assert signed_in.get(f"/runs/{run.pk}/stop/").status_code == 405
    assert signed_in.post(f"/runs/{run.pk}/stop/").status_code == 302
    run.refresh_from_db()
    assert run.stop_requested_at is not None


def test_tabs_one_may_not_see_are_not_there(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "view", run.job)
    page = signed_in.get(f"/runs/{run.pk}/").content.decode()

    assert [tab for tab in TABS if f"?tab={tab}" in page] == ["metrics", "parameters", "events"]


def test_an_unknown_tab_is_not_found(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "viewer", run.job)

    assert signed_in.get(f"/runs/{run.pk}/?tab=nothing").status_code == 404


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_costs_few_queries_and_little_time(run: Run, user: User, signed_in: Client, tab: str) -> None:
    rights.grant(user, "operator", run.job)
    AttemptFactory(run=run)
    store_items(run, [{f"key{k}": f"value {n} {k}" for k in range(20)} for n in range(60)], first=3)
    address = f"/runs/{run.pk}/?tab={tab}"
    signed_in.get(address)
    times = []
    for _round in range(5):
        begin = time.process_time()
        with CaptureQueriesContext(connection) as queries:
            assert signed_in.get(address).status_code == 200
        times.append(time.process_time() - begin)

    assert len(queries) <= 12, [query["sql"][:150] for query in queries]
    assert min(times) < 0.15, times  # of this process, not of its neighbours


def test_secrets_are_dots(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "viewer", run.job)
    run.spec = {**run.spec, "parameters": {"page": 3}, "secrets": {"password": 4711}}
    run.save(update_fields=["spec"])
    page = signed_in.get(f"/runs/{run.pk}/?tab=parameters").content.decode()

    assert "password" in page
    assert "••••" in page
    assert "4711" not in page


def test_the_viewer_gets_ranges_filters_and_hits(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "viewer", run.job)
    store_rows(run, [row(n, f"line {n}", 10 if n % 2 else 30) for n in range(3, 101)], [7] * 5)
    ask = f"/runs/{run.pk}/log/"

    assert [each[0] for each in signed_in.get(ask, {"after": 10, "before": 15}).json()["rows"]] == [11, 12, 13, 14]
    assert [each[0] for each in signed_in.get(ask, {"before": 10, "limit": 2}).json()["rows"]] == [8, 9]
    assert [each[0] for each in signed_in.get(ask, {"after": 90, "level": 20}).json()["rows"]] == [92, 94, 96, 98, 100]
    hit = signed_in.get(ask, {"search": "LINE 77", "limit": 1}).json()
    assert [each[3] for each in hit["rows"]] == ["line 77"]
    index = signed_in.get(ask + "index/").json()
    assert index["first_error"] == 2
    assert sum(sum(block[2:7]) for block in index["blocks"]) == 100


@pytest.mark.parametrize(
    "query",
    [
        "after=x",
        "after=-1",
        "limit=0",
        "limit=99999999999999999999",
        "level=abc",
        "before=",
        "search=%00",
        "search=%ff",
        "after=\uff19",
    ],
)
def test_odd_questions_get_an_answer(run: Run, user: User, signed_in: Client, query: str) -> None:
    rights.grant(user, "viewer", run.job)

    assert signed_in.get(f"/runs/{run.pk}/log/?{query}").status_code == 200
    assert signed_in.get(f"/runs/{run.pk}/?tab=data&{query}").status_code == 200


def test_pages_of_items_go_forward_and_back_by_number(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "viewer", run.job)
    store_items(run, [{"n": n} for n in range(100)], first=3)
    second = signed_in.get(f"/runs/{run.pk}/?tab=data&after=50").content.decode()

    assert 'href="?tab=data&amp;after=100"' in second
    assert 'href="?tab=data"' in second
    assert ">51</td>" in second
    assert ">50</td>" not in second


def test_the_table_shows_values_by_their_kind(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "viewer", run.job)
    store_items(run, [{"a": "<b>", "u": "https://a.test/?x=1&y='\"", "n": {"k": "<i>"}, "e": "", "z": None}], first=3)
    page = signed_in.get(f"/runs/{run.pk}/?tab=data").content.decode()

    assert "<bdi>&lt;b&gt;</bdi>" in page
    assert 'href="https://a.test/?x=1&amp;y=&#x27;&quot;" rel="noopener noreferrer"' in page
    assert (
        "<summary><bdi>object with 1 key</bdi></summary><pre>{\n  &quot;k&quot;: &quot;&lt;i&gt;&quot;\n}</pre>" in page
    )
    assert '<code class="claw-cell-empty">&quot;&quot;</code>' in page
    assert '<code class="claw-cell-empty">null</code>' in page


def test_downloads_carry_everything_exactly(run: Run, user: User, signed_in: Client) -> None:
    rights.grant(user, "operator", run.job)
    text = (CASES / "items" / "items_hostile.jsonl").read_text()
    hostile = [json.loads(line)["data"] for line in text.split("\n") if line.strip()]
    store_items(run, hostile, first=3)

    lines = b"".join(signed_in.get(f"/runs/{run.pk}/items.jsonl")).decode().split("\n")
    table = b"".join(signed_in.get(f"/runs/{run.pk}/items.csv")).decode()
    log = signed_in.get(f"/runs/{run.pk}/run.log")

    assert [json.loads(line) for line in lines if line][2:] == hostile
    assert len(list(csv.reader(io.StringIO(table, newline="")))) == len(hostile) + 3
    assert b"".join(log) == b"a line\nan error\n"
    assert log["Content-Disposition"] == f'attachment; filename="run-{run.pk}.log"'


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "empty", "null"),
        ("", "empty", '""'),
        ([], "empty", "[]"),
        ({}, "empty", "{}"),
        (False, "word", "false"),
        (0, "number", "0"),
        ("0", "text", "0"),
        ([0], "nested", "list of 1"),
        ("https://a.test/x", "link", "https://a.test/x"),
        ("https://a.test/x.JPG?y", "image", "https://a.test/x.JPG?y"),
        ("two\nlines", "long", "two…"),
    ],
)
def test_values_are_told_apart(value: Any, kind: str, text: str) -> None:
    cell = cell_of(value)

    assert (cell.kind, cell.text) == (kind, text)


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        " https://a.test",
        "https://a.test/ x",
        "data:text/html,x",
        "https://",
        "http:a",
        "//a.test",
        "https://a.test/\u202ex",
        "https://[",
        "HTTPS:\\\\a",
        "https://a.test/\n",
    ],
)
def test_only_whole_http_addresses_become_links(text: str) -> None:
    assert link_of(text) == ""
