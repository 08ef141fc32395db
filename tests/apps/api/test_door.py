"""What every endpoint has in common: signing in, addresses, methods, bodies, the brake."""

from __future__ import annotations

import socket
import time
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.services import create_token
from apps.api import throttles
from apps.core import brakes
from tests.apps.test_access_matrix import EVERYTHING, sample_of
from tests.factories import RunFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(owner: User, now) -> str:
    return create_token(user=owner, name="test", now=now)[1]


def shape(answer) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"code", "detail", "fields"}
    assert body["detail"].endswith(".")
    return answer.status_code, body["code"]


def test_without_a_token_the_answer_is_401_and_says_how():
    answer = Client().get("/api/v1/runs/")
    assert shape(answer) == (401, "not_signed_in")
    assert answer["WWW-Authenticate"] == "Token"


@pytest.mark.parametrize(
    "header", ["Token", "Token x", "Token a b", "Token claw_" + "0" * 64, "Token \x00", "Bearer x"]
)
def test_a_wrong_token_is_401(header):
    assert shape(Client().get("/api/v1/runs/", headers={"authorization": header})) == (401, "not_signed_in")


def test_an_expired_token_is_401(owner, now):
    text = create_token(user=owner, name="old", now=now - timedelta(days=2), ttl=timedelta(days=1))[1]
    answer = Client().get("/api/v1/runs/", headers={"authorization": f"Token {text}"})
    assert shape(answer) == (401, "not_signed_in")
    assert "expired" in answer.json()["detail"]


def test_a_token_opens_the_door(token):
    assert Client().get("/api/v1/runs/", headers={"authorization": f"Token {token}"}).status_code == 200


def test_a_session_needs_the_csrf_token_to_change_something(owner, job):
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    assert client.get("/api/v1/runs/").status_code == 200
    answer = client.post(f"/api/v1/jobs/{job.pk}/run/", content_type="application/json")
    assert shape(answer) == (403, "forbidden")


# Every change of the API that a token for runs may ask for: one more has to be meant.
FOR_RUNS = {
    *("job-run", "run-stop", "run-kill", "run-pause", "run-resume", "run-rerun", "run-bulk"),
    *("batch-stop", "batch-again", "backfill-list", "inputs-list"),
}


def test_a_token_for_runs_changes_nothing_but_runs(owner, now):
    text = create_token(user=owner, name="runner", scope="run", now=now)[1]
    client = Client(headers={"authorization": f"Token {text}"})
    open_to_it = set()
    for route, name, pattern in EVERYTHING:
        for method in list(getattr(pattern.callback, "actions", None) or ()):
            if route.startswith("api/v1/") and method not in ("get", "head"):
                answer = client.generic(method.upper(), sample_of(route), b"{}", "application/json")
                if answer.status_code != 403 or "scope" not in answer.json()["detail"]:
                    open_to_it.add(name.removeprefix("api:"))
    assert open_to_it == FOR_RUNS


@pytest.mark.parametrize(
    ("scope", "look", "run", "change"), [("read", 200, 403, 403), ("run", 200, 201, 403), ("write", 200, 201, 200)]
)
def test_the_scope_of_a_token_bounds_what_its_owner_may(owner, job, now, scope, look, run, change):
    text = create_token(user=owner, name=scope, scope=scope, now=now)[1]
    client = Client(headers={"authorization": f"Token {text}"})
    job_address = f"/api/v1/jobs/{job.pk}/"
    active = RunFactory(job=job, state="running")
    assert client.get(job_address).status_code == look
    assert client.post(f"{job_address}run/", content_type="application/json").status_code == run
    assert client.post(f"/api/v1/runs/{active.pk}/stop/").status_code == (200 if run == 201 else 403)
    assert client.post(f"/api/v1/runs/{active.pk}/rerun/", content_type="application/json").status_code == run
    assert client.patch(job_address, {"name": "n"}, content_type="application/json").status_code == change


@pytest.mark.parametrize("address", ["/api/", "/api/v1/", "/api/v2/runs/", "/api/v1/runs/x/", "/api/v1/spiders/a b/"])
@pytest.mark.parametrize("method", ["get", "post", "put", "delete", "trace"])
def test_an_address_that_is_none_is_404_in_json(address, method):
    assert shape(getattr(Client(), method)(address)) == (404, "not_found")


@pytest.mark.parametrize("address", ["/api/v1/runs", "/api/v1/jobs/1/run"])
def test_a_forgotten_slash_is_pointed_out(address):
    answer = Client().post(address)
    assert shape(answer) == (404, "not_found")
    assert f"{address}/" in answer.json()["detail"]


def test_a_method_that_is_not_there_is_405(api, job):
    answer = api.delete("/api/v1/runs/")
    assert shape(answer) == (405, "method_not_allowed")
    assert "GET" in answer["Allow"]
    assert api.get(f"/api/v1/jobs/{job.pk}/run/").status_code == 405


def test_a_body_that_is_not_json_is_refused(api, job):
    address = f"/api/v1/jobs/{job.pk}/run/"
    assert shape(api.post(address, "{", content_type="application/json")) == (400, "parse_error")
    assert shape(api.post(address, "a=1", content_type="application/x-www-form-urlencoded")) == (
        415,
        "unsupported_media_type",
    )
    huge = '{"parameters": {"words": ["' + "x" * (2 * 1024 * 1024) + '"]}}'
    assert shape(api.post(address, huge, content_type="application/json")) == (400, "too_large")


def test_a_body_without_a_length_is_not_taken_for_an_empty_one(api, job):
    answer = api.post(f"/api/v1/jobs/{job.pk}/run/", headers={"transfer-encoding": "chunked"}, CONTENT_LENGTH="")
    assert shape(answer) == (411, "length_required")


def test_the_brake_counts_changes_of_one_user(api, job, monkeypatch):
    monkeypatch.setattr(throttles, "WRITES_A_MINUTE", 2)
    monkeypatch.setattr(brakes, "WINDOW_SECONDS", 3600)
    cache.clear()
    address = f"/api/v1/jobs/{job.pk}/run/"
    assert [api.post(address, {"no": 1}).status_code for _ in range(3)] == [400, 400, 429]
    answer = api.post(address)
    assert shape(answer) == (429, "throttled")
    assert 0 < int(answer["Retry-After"]) <= 3601
    assert api.get("/api/v1/runs/").status_code == 200
    other = APIClient()
    other.force_authenticate(UserFactory())
    assert other.post(address).status_code == 404


def test_without_the_cache_the_api_goes_on(api, monkeypatch):
    def broken(*_args: object, **_kwargs: object) -> None:
        raise RedisConnectionError

    monkeypatch.setattr(brakes.cache, "add", broken)
    assert api.get("/api/v1/runs/").status_code == 200


def test_a_cache_that_hangs_costs_a_request_a_moment(api, settings, tmp_path):
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(tmp_path / "hung"))
        hung.listen()
        settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": f"unix://{tmp_path / 'hung'}"}}
        began = time.monotonic()
        assert api.get("/api/v1/runs/").status_code == 200
        assert time.monotonic() - began < 4


def test_the_documentation_needs_a_person_signed_in(client, owner):
    for address in ("/api/schema/", "/api/docs/", "/api/docs/?script="):
        assert client.get(address).status_code == 401
    client.force_login(owner)
    for address in ("/api/schema/", "/api/docs/", "/api/docs/?script="):
        assert client.get(address).status_code == 200


def test_a_body_of_many_unknown_names_is_answered_in_short(api):
    answer = api.post("/api/v1/jobs/", {f"k{n}": 1 for n in range(20_000)})
    assert answer.status_code == 400
    assert len(answer.content) < 10_000
