"""All of the API with curl, as docs/api.md tells it, against a whole panel."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.panel import ROOT, Panel

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl: apt-get install -y curl")

OVER = ("succeeded", "failed", "timed_out", "canceled", "lost")


@dataclass(frozen=True)
class Answer:
    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Curl:
    """`curl` with a token, as a person would type it."""

    url: str
    token: str

    def __call__(self, path: str, *options: str, body: Any = None) -> Answer:
        address = path if path.startswith("http") else f"{self.url}/api/v1/{path}"
        command = ["curl", "-sS", "-m", "60", "-w", "\n%{http_code}", "-H", f"Authorization: Token {self.token}"]
        if body is not None:
            command += ["-X", "POST", "-H", "Content-Type: application/json", "-d", json.dumps(body)]
        done = subprocess.run([*command, *options, address], capture_output=True, text=True, check=True)
        text, _, status = done.stdout.rpartition("\n")
        return Answer(int(status), text)

    def wait(self, run: int, *states: str) -> Any:
        deadline = time.monotonic() + 120
        while True:
            found = self(f"runs/{run}/").json
            if found["state"] in states:
                return found
            assert found["state"] not in OVER, found
            assert time.monotonic() < deadline, found
            time.sleep(0.2)


@pytest.fixture
def curl(running_panel: Panel) -> Curl:
    return Curl(running_panel.url, running_panel.session.headers["Authorization"].split()[1])


def test_from_a_spider_to_its_data(curl: Curl) -> None:
    assert {"quotes", "books", "prices", "slow"} <= {each["name"] for each in curl("spiders/").json["results"]}
    schema = curl("spiders/quotes/schema/").json["parameter_schema"]
    assert schema["properties"]["max_pages"]["type"] == "integer"
    made = curl("jobs/", body={"name": "by curl", "spider": "quotes", "parameters": {"max_pages": 1}})
    assert made.status == 201, made.text
    job = made.json["id"]
    started = curl(f"jobs/{job}/run/", "-H", "Idempotency-Key: journey", body={"parameters": {"max_pages": 2}})
    assert started.status == 201, started.text
    run = started.json["id"]
    again = curl(f"jobs/{job}/run/", "-H", "Idempotency-Key: journey", body={"parameters": {"max_pages": 2}})
    assert (again.status, again.json["id"]) == (200, run)
    ended = curl.wait(run, "succeeded")
    assert ended["parameters"]["max_pages"] == 2
    assert ended["exit_code"] == 0
    assert ended["items"] > 0
    assert ended["node"]

    lines = curl(f"runs/{run}/log.txt").text.splitlines()
    assert len(lines) == ended["lines"]
    rows, address = [], f"runs/{run}/log/?limit=3"
    while address:
        page = curl(address).json
        rows += page["results"]
        address = page["next"]
    assert [row["line"] for row in rows] == list(range(1, ended["lines"] + 1))
    assert [row["text"] for row in rows] == lines

    items = [json.loads(line) for line in curl(f"runs/{run}/items.jsonl").text.splitlines()]
    assert len(items) == ended["items"]
    assert {"text", "author", "tags", "url"} <= set(items[0])
    assert curl(f"runs/{run}/items/?limit=1").json["results"][0]["data"] == items[0]
    table = list(csv.DictReader(io.StringIO(curl(f"runs/{run}/items.csv").text)))
    assert [each["author"] for each in table] == [each["author"] for each in items]
    assert run in [each["id"] for each in curl("runs/?state=succeeded&spider=quotes").json["results"]]


def test_a_run_is_stopped_and_says_so(curl: Curl) -> None:
    body = {"name": "stopped by curl", "spider": "slow", "parameters": {"count": 10_000, "per_second": 20}}
    job = curl("jobs/", body=body).json["id"]
    run = curl(f"jobs/{job}/run/", body={}).json["id"]
    curl.wait(run, "running")
    assert curl(f"runs/{run}/stop/", "-X", "POST").status == 200
    ended = curl.wait(run, "canceled")
    assert ended["reason"] == "stopped_by_user"
    assert ended["message"]
    assert curl(f"runs/{run}/stop/", "-X", "POST").json["code"] == "run_finished"
    assert curl(f"jobs/{job}/", "-X", "DELETE").status == 204


def test_a_spider_that_fails_says_why(curl: Curl) -> None:
    body = {"name": "fails by curl", "spider": "slow", "parameters": {"count": 2, "exit_code": 3}}
    run = curl(f"jobs/{curl('jobs/', body=body).json['id']}/run/", body={}).json["id"]
    ended = curl.wait(run, "failed")
    assert (ended["reason"], ended["exit_code"]) == ("exit_nonzero", 3)
    assert "3" in ended["message"]


def test_refusals_have_their_shape_through_the_whole_server(curl: Curl) -> None:
    wrong = [
        (curl("runs/999999999/"), 404, "not_found"),
        (curl("runs/?state=done"), 400, "invalid"),
        (curl("jobs/", "-X", "POST", "-H", "Content-Type: application/json", "-d", "{"), 400, "parse_error"),
        (curl("jobs/", "-X", "POST", "-d", "a=1"), 415, "unsupported_media_type"),
        (curl("jobs/1/run/", "-H", "Transfer-Encoding: chunked", body={"parameters": {}}), 411, "length_required"),
        (curl("runs"), 404, "not_found"),
        (curl("runs/", "-X", "DELETE"), 405, "method_not_allowed"),
        (Curl(curl.url, "claw_wrong")("runs/"), 401, "not_signed_in"),
    ]
    assert [(answer.status, answer.json["code"]) for answer, _, _ in wrong] == [each[1:] for each in wrong]
    assert all(set(answer.json) == {"code", "detail", "fields"} for answer, _, _ in wrong)


def test_a_job_is_run_from_the_shell(curl: Curl, running_panel: Panel) -> None:
    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", "run_job", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=running_panel.environment, capture_output=True, text=True, timeout=120, check=False
        )

    body = {"name": "from the shell", "spider": "slow", "parameters": {"count": 3, "per_second": 50}}
    assert curl("jobs/", body=body).status == 201
    fine = shell("from the shell", "--wait")
    assert fine.returncode == 0, fine.stderr
    assert len(fine.stdout.splitlines()) >= 3
    failed = shell("from the shell", "--param", "exit_code=5", "--wait")
    assert failed.returncode == 1
    assert "5" in failed.stderr
