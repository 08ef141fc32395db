"""Webhooks of a whole panel, called over real HTTP as other programs call them."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.journeys.valkeys import Server, valkey
from tests.panel import Panel, panel

pytestmark = pytest.mark.timeout(420)

BY_HAND = """
SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$KEY" | sed 's/^.* //')
curl -sS -H 'Content-Type: application/json' -H "X-Signature-256: sha256=$SIGNATURE" -d "$BODY" "$ADDRESS"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with valkey() as started:
        yield started


@pytest.fixture(scope="module")
def on_valkey(server: Server) -> Iterator[Panel]:
    with panel("process", slots=4, REDIS_URL=server.url) as started:
        yield started


def hook(on: Panel, name: str, **more: Any) -> dict[str, Any]:
    job = on.job(f"called by {name}", "slow", count=5, per_second=0, items_every=5)
    made: dict[str, Any] = on.post(f"jobs/{job}/hooks/", {"name": name, **more})
    return {**made, "job": job}


def signed(key: str, body: bytes) -> dict[str, str]:
    return {"X-Signature-256": "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()}


def test_programs_call_with_a_signature_and_their_run_runs(on_valkey: Panel) -> None:
    made = hook(on_valkey, "signer", mapping={"count": "order.lines"})
    body = b'{"order": {"lines": "7"}}'
    answer = requests.post(made["url"], data=body, headers=signed(made["key"], body), timeout=30)
    assert answer.status_code == 202, answer.text
    run = on_valkey.wait(answer.json()["run"])
    assert (run["state"], run["trigger"], run["parameters"]["count"]) == ("succeeded", "webhook", 7)
    assert [line for line in on_valkey.lines(run["id"]) if line.startswith("line ")][-1] == "line 7"

    variables = {"ADDRESS": made["url"], "KEY": made["key"], "BODY": body.decode()}
    done = subprocess.run(["sh", "-ec", BY_HAND], env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["state"] == "queued"
    # A sender that does not know the length beforehand sends chunks.
    chunks = requests.post(made["url"], data=iter([body[:5], body[5:]]), headers=signed(made["key"], body), timeout=30)
    assert chunks.status_code == 202, chunks.text
    for wrong in ({}, signed("0" * 64, body), signed(made["key"], body + b" ")):
        assert requests.post(made["url"], data=body, headers=wrong, timeout=30).status_code == 404
    assert requests.post(made["url"], data=b"x" * 300_000, timeout=30).status_code == 413


def test_fifty_at_once_with_one_delivery_are_one_run(on_valkey: Panel) -> None:
    made = hook(on_valkey, "sender", kind="url", per_minute=600)

    def call(_: int) -> requests.Response:
        return requests.post(made["url"], json={"count": 3}, headers={"X-GitHub-Delivery": "d-1"}, timeout=60)

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(call, range(50)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["run"] for answer in answers}) == 1
    assert sum(answer.json()["new"] for answer in answers) == 1
    assert call(0).json() == {**answers[0].json(), "new": False, "state": call(0).json()["state"]}
    assert len(on_valkey.get("runs/", job=made["job"])["results"]) == 1


def test_a_revoked_address_is_unknown_and_stands_in_no_log(on_valkey: Panel) -> None:
    made = hook(on_valkey, "leaver", kind="url")
    assert requests.post(made["url"], json={"count": "no number"}, timeout=30).status_code == 422
    gone = on_valkey.session.delete(f"{on_valkey.url}/api/v1/jobs/{made['job']}/hooks/{made['id']}/", timeout=30)
    assert gone.status_code == 204
    answer = requests.post(made["url"], json={}, timeout=30)
    unknown = requests.post(f"{on_valkey.url}/hooks/{'x' * 43}/", json={}, timeout=30)
    assert (answer.status_code, answer.content) == (unknown.status_code, unknown.content) == (404, unknown.content)
    token = made["url"].rstrip("/").rpartition("/")[2]
    for log in on_valkey.home.rglob("*.log"):
        text = log.read_text(errors="replace")
        assert token not in text, log
    assert "/hooks/***" in (on_valkey.home / "up.log").read_text()


def test_without_the_broker_a_call_is_taken_and_its_run_runs(on_valkey: Panel, server: Server) -> None:
    made = hook(on_valkey, "patient", kind="url")
    server.kill()
    try:
        began = time.monotonic()
        answer = requests.post(made["url"], json={"count": 2}, timeout=60)
        assert answer.status_code == 202, answer.text
        assert time.monotonic() - began < 10
        assert on_valkey.wait(answer.json()["run"])["state"] == "succeeded"
    finally:
        server.start()
