"""What parameters become, asked over the API."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts.rights import grant
from apps.jobs.models import CallHost
from apps.runs.models import Run
from tests.factories import JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/jobs/preview-parameters/"
CALL_PARTS = ["method", "url", "headers", "secret_headers", "body"]
SCHEMA = {
    "type": "object",
    "properties": {
        "since": {"type": "string", "format": "date", "default": "{{ yesterday }}"},
        "pages": {"type": "integer", "maximum": 31},
        "note": {"type": "string"},
    },
}


@pytest.fixture
def spider():
    return SpiderFactory(kind="command", version__parameter_schema=SCHEMA, version__command=["crawl"])


@pytest.fixture
def api_for(api, owner, spider):
    grant(owner, "developer", spider.project)
    return api


def test_values_are_of_the_given_time(api_for, spider):
    answer = api_for.post(
        ADDRESS,
        {
            "spider": spider.name,
            "parameters": {"pages": '{{ scheduled_for | date:"%d" }}'},
            "arguments": ["--on={{ today }}", "{{ params.pages }}", "{{ node.name }}"],
            "env": {"DAY": "{{ params.since }}"},
            "scheduled_for": "2026-11-29T16:05:00Z",
            "timezone": "Asia/Shanghai",
        },
    )
    assert answer.status_code == 200, answer.data
    assert answer.data == {
        "parameters": {"pages": 30, "since": "2026-11-29"},
        "env": {"DAY": "2026-11-29"},
        "command": ["crawl", "--on=2026-11-30", "30", "{{ node.name }}"],
        "faults": {},
        "open": {"command.3": "{{ node.name }}"},
    }
    assert not Run.objects.exists()


def test_faults_are_told_at_their_places(api_for, spider):
    answer = api_for.post(
        ADDRESS,
        {
            "spider": spider.name,
            "parameters": {"pages": "{{ run.id }}0000", "note": "{{ toady }}", "since": "soon"},
            "arguments": ["{% x %}"],
        },
    )
    assert answer.status_code == 200
    assert set(answer.data["faults"]) == {"parameters.pages", "parameters.note", "parameters.since", "command.1"}
    assert "toady" in answer.data["faults"]["parameters.note"][0]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "job"),
        ({"spider": "none"}, "spider"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"scheduled_for": "9999-12-31T23:59:59Z"}, "scheduled_for"),
        ({"arguments": "x"}, "arguments"),
        ({"parameters": []}, "parameters"),
    ],
)
def test_what_cannot_be_asked(api_for, spider, asked, field):
    named = {} if asked == {} else {"spider": spider.name}
    answer = api_for.post(ADDRESS, {**named, **asked})
    assert answer.status_code == 400
    assert field in answer.data["fields"]


def test_calls_are_made_only_when_asked_and_by_who_may_run(api, owner, spider, now):
    CallHost.objects.create(host="api.example.test", created_at=now)
    call = {"one": {"url": "https://api.example.test/x"}}
    job = JobFactory(spider=spider, project=spider.project, calls=call, parameters={"note": "{{ call.one.x }}"})
    grant(owner, "view", job)

    shown = api.post(ADDRESS, {"job": job.pk})
    refused = api.post(ADDRESS, {"job": job.pk, "calls": True})

    assert shown.data["open"] == {"parameters.note": "{{ call.one.x }}"}
    assert shown.data["parameters"]["note"] == "{{ call.one.x }}"
    assert refused.status_code == 403


ODD = st.sampled_from(
    [
        "",
        "\x00",
        "\ud800",
        "{{",
        "}}",
        "{{7*7}}",
        "{{ today }}",
        "{{ params.note }}",
        "{{ upstream.1.x }}",
        "{% x %}",
        "中文",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD | st.sampled_from(CALL_PARTS), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    body=st.fixed_dictionaries(
        {},
        optional={
            "parameters": st.dictionaries(st.sampled_from(["since", "pages", "note", "x"]), VALUES, max_size=3),
            "arguments": st.lists(ODD, max_size=3) | VALUES,
            "env": st.dictionaries(ODD, ODD, max_size=2) | VALUES,
            "scheduled_for": VALUES,
            "timezone": st.sampled_from(["UTC", "Asia/Shanghai", "../etc/passwd", "posixrules", "\x00"]) | VALUES,
            "calls": VALUES,
        },
    )
)
def test_no_body_breaks_the_preview(api_for, spider, body):
    answer = api_for.post(ADDRESS, json.dumps({"spider": spider.name, **body}), content_type="application/json")
    assert answer.status_code in (200, 400)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    body=st.fixed_dictionaries(
        {},
        optional={
            "arguments": st.lists(ODD, max_size=3) | VALUES,
            "calls": st.dictionaries(
                st.sampled_from(["a", "b-c", "", "1"]) | ODD,
                st.fixed_dictionaries({}, optional=dict.fromkeys(CALL_PARTS, VALUES)) | VALUES,
                max_size=2,
            )
            | VALUES,
            "env": st.dictionaries(st.sampled_from(["A", "B"]), ODD, max_size=2),
        },
    )
)
def test_no_body_breaks_the_saving_of_a_job(api_for, spider, owner, body):
    job = JobFactory(spider=spider, project=spider.project)
    answer = api_for.patch(f"/api/v1/jobs/{job.pk}/", json.dumps(body), content_type="application/json")
    assert answer.status_code in (200, 400)
