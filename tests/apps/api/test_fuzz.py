"""Whatever is sent, the answer is never a 500 and always has one of our shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import NodeFactory, RunFactory

pytestmark = pytest.mark.django_db

# Each example runs in the test's own transaction: rows that pile up do no harm.
relaxed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

# fmt: off
NAMES = st.sampled_from([
    "name", "spider", "parameters", "limits", "priority", "env", "memory_mb", "cpus", "timeout_seconds",
    "grace_seconds", "count", "words", "password", "set", "state", "id", "version", "CLAW_RUN", "PATH",
]) | st.text(max_size=8)
FILTERS = st.sampled_from(["after", "limit", "level", "state", "job", "spider", "since", "attempt", "x"])
# fmt: on
ODD = st.sampled_from(
    [
        "",
        "\x00",
        "\ud800",
        "\u202eevil",
        "=1+1",
        "<b>",
        "{{7*7}}",
        "%s",
        "../../x",
        "x" * 300,
        "中文",
        "1",
        "nan",
        "null",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63 - 1, -(2**63), 10**30, 0, -1])
    | st.floats(width=64)
    | st.text(max_size=12)
    | ODD
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=6)


def dump(value: Any) -> bytes:
    """JSON as a careless program writes it: lone surrogates escaped, NaN spelt out."""
    return json.dumps(value).encode()


def check(answer: Any) -> None:
    assert answer.status_code < 500, answer.content
    if answer.status_code >= 400:
        body = answer.json()
        assert set(body) == {"code", "detail", "fields"}
        assert body["detail"]
        assert all(isinstance(path, str) and sentences for path, sentences in body["fields"].items())


@relaxed
@given(body=BODIES, spider=st.booleans())
def test_making_a_job(api, job, body, spider):
    if spider:
        body |= {"spider": job.spider.name, "name": str(body.get("name", "n"))}
    check(api.post("/api/v1/jobs/", dump(body), content_type="application/json"))


@relaxed
@given(body=BODIES)
def test_changing_a_job(api, job, body):
    body.pop("name", None)
    check(api.patch(f"/api/v1/jobs/{job.pk}/", dump(body), content_type="application/json"))


@relaxed
@given(parameters=VALUES, key=st.none() | st.text(st.characters(max_codepoint=255), max_size=30))
def test_running_a_job(api, job, parameters, key):
    headers = {} if key is None else {"idempotency-key": key}
    body = dump({"parameters": parameters})
    check(api.post(f"/api/v1/jobs/{job.pk}/run/", body, content_type="application/json", headers=headers))


@relaxed
@given(body=BODIES, value=VALUES, address=st.sampled_from(["runs/bulk", "runs/{run}/rerun", "nodes/1/drain", "pools"]))
def test_acting_on_runs_and_places(api, job, owner, body, value, address):
    """As a superuser: nobody else gets as far as the body of a node or pool."""
    owner.is_superuser = True
    run = RunFactory(job=job)
    node = NodeFactory(pk=1)
    body = {"action": "rerun", "ids": value, "within": value, "limit": value, "parameters": value, **body}
    names = {"bulk": ("action", "ids"), "rerun": ("parameters",), "drain": ("within",), "pools": ("name", "limit")}
    own = names[address.rsplit("/", 1)[-1]]
    for sent in (body, {name: body[name] for name in own if name in body}):
        target = f"/api/v1/{address.format(run=run.pk)}/"
        check(api.post(target, dump(sent), content_type="application/json"))
    node.delete()


@relaxed
@given(query=st.dictionaries(FILTERS, SCALARS, max_size=3))
def test_filters(api, job, query):
    run = RunFactory(job=job)
    texts = {name: str(value).encode("utf-8", "replace").decode() for name, value in query.items()}
    own = f"runs/{run.pk}/"
    lists = ("spiders/", "jobs/", "runs/", "nodes/", "pools/")
    for address in (*lists, f"{own}log/", f"{own}items/", f"{own}events/", f"{own}items.csv"):
        check(api.get(f"/api/v1/{address}", texts))
    run.delete()
