"""Spider pages, and parameters as tables."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from apps.accounts.rights import grant
from apps.runs.states import State
from apps.spiders.tables import parameter_rows, value_rows
from tests.factories import AdminFactory, BareSpiderFactory, JobFactory, RunFactory, SpiderFactory, UserFactory

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {
        "city": {"type": "string", "title": "City", "x-title-zh-hans": "城市", "description": "Where."},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5, "default": 3},
        "kind": {"enum": ["a", "b"]},
        "key": {"type": "string", "writeOnly": True},
        "since": {"type": ["string", "null"], "format": "date"},
    },
}


@pytest.fixture
def page(db: None) -> Client:
    client = Client()
    client.force_login(AdminFactory(), backend=BACKEND)
    return client


def test_a_spider_says_what_it_asks_for(page: Client) -> None:
    SpiderFactory(name="weather", version__parameter_schema=SCHEMA)
    text = page.get("/spiders/weather/").content.decode()
    for word in ("City", "Where.", "1 to 5", "a, b", "secret", "needed"):
        assert word in text


def test_a_spider_without_a_version_has_a_page(page: Client) -> None:
    BareSpiderFactory(name="empty")
    assert page.get("/spiders/empty/").status_code == 200
    assert "never run" in page.get("/spiders/").content.decode()


def test_lists_show_the_last_runs_newest_at_the_right(page: Client) -> None:
    job = JobFactory()
    runs = [RunFactory(job=job, state=State.SUCCEEDED) for _ in range(9)]
    text = page.get("/spiders/").content.decode()
    shown = [run.pk for run in runs if f'href="/runs/{run.pk}/"' in text]
    assert shown == [run.pk for run in runs[-7:]]


@pytest.mark.django_db
def test_only_visible_spiders_are_shown() -> None:
    mine, foreign = SpiderFactory(), SpiderFactory()
    viewer = UserFactory()
    grant(viewer, "viewer", mine)
    client = Client()
    client.force_login(viewer, backend=BACKEND)
    text = client.get("/spiders/").content.decode()
    assert f"/spiders/{mine.name}/" in text
    assert f"/spiders/{foreign.name}/" not in text
    assert client.get(f"/spiders/{foreign.name}/").status_code == 404
    assert "/jobs/new/?spider=" not in client.get(f"/spiders/{mine.name}/").content.decode()


def test_pages_take_few_queries_however_many_rows(page: Client) -> None:
    spider = SpiderFactory()
    for _ in range(12):
        RunFactory(job=JobFactory(spider=spider))
        SpiderFactory()
    for path in ("/spiders/", f"/spiders/{spider.name}/"):
        page.get(path)
        with CaptureQueriesContext(connection) as captured:
            assert page.get(path).status_code == 200
        assert len(captured) <= 12, path


def test_titles_are_in_the_readers_language() -> None:
    with translation.override("zh-hans"):
        assert parameter_rows(SCHEMA)[0].title == "城市"


@pytest.mark.parametrize(
    "schema", [{}, {"properties": []}, {"properties": {"a": True}}, {"properties": {"a": {"type": 7}}}]
)
def test_odd_schemas_make_no_fault(schema: dict[str, object]) -> None:
    parameter_rows(schema)
    value_rows(schema, {"a": 1})


def test_values_are_readable_and_secrets_are_dots() -> None:
    rows = {row.name: row for row in value_rows(SCHEMA, {"stars": 5, "old": [1, 2], "city": True}, ["key"])}
    assert rows["city"].text == "yes"
    assert rows["old"].text == "1, 2"
    assert (rows["key"].secret, rows["key"].text) == (True, "")
