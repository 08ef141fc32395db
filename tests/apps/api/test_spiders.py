"""Spiders over the API."""

from __future__ import annotations

import pytest

from tests.factories import BareSpiderFactory, SpiderFactory

pytestmark = pytest.mark.django_db


def test_spiders_are_listed_by_name_in_the_language_asked_for(api, project):
    for name in ("b", "a"):
        SpiderFactory(project=project, name=name, titles={"en": f"Books {name}", "zh-hans": f"图书 {name}"})
    SpiderFactory(name="elsewhere")
    answer = api.get("/api/v1/spiders/?limit=1").data
    assert [row["title"] for row in answer["results"]] == ["Books a"]
    chinese = api.get(answer["next"], headers={"accept-language": "zh-hans"}).data
    assert [row["title"] for row in chinese["results"]] == ["图书 b"]
    assert chinese["next"] is None


def test_a_spider_shows_its_version_and_schemas(api, job):
    name = job.spider.name
    assert api.get(f"/api/v1/spiders/{name}/").data["version"] == "1.0.0"
    schema = api.get(f"/api/v1/spiders/{name}/schema/").data
    assert schema["parameter_schema"]["properties"]["count"]["minimum"] == 1
    assert schema["item_schema"] is None


def test_a_spider_without_a_version_has_no_schema(api, project):
    bare = BareSpiderFactory(project=project)
    assert api.get(f"/api/v1/spiders/{bare.name}/").data["version"] is None
    answer = api.get(f"/api/v1/spiders/{bare.name}/schema/")
    assert (answer.status_code, answer.data["code"]) == (404, "not_found")


def test_a_spider_of_others_is_not_there(api):
    other = SpiderFactory()
    for address in (f"/api/v1/spiders/{other.name}/", f"/api/v1/spiders/{other.name}/schema/"):
        assert api.get(address).status_code == 404
