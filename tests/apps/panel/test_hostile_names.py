"""Hostile names of schedules, webhooks, tables and hosts: refused in words, or shown as what they are."""

from __future__ import annotations

import json
from datetime import datetime
from html import escape
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client

from apps.accounts.models import User
from apps.runs.models import Run
from tests.factories import AdminFactory, JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

LIST = Path(__file__).resolve().parents[2] / "cases" / "lists" / "names_hostile.txt"
NAMES = [json.loads(line) if line.startswith('"') else line for line in LIST.read_text(encoding="utf-8").splitlines()]
SCHEMA = {"type": "object", "properties": {"pages": {"type": "integer"}}}


def signed_in(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.mark.parametrize("name", [name for name in NAMES if name], ids=range(len([name for name in NAMES if name])))
def test_a_hostile_name_is_refused_in_words_or_shown_as_it_is(db: None, now: datetime, name: str) -> None:
    cache.clear()
    client = signed_in(AdminFactory())
    job = JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA), overlap="allow")
    made = {
        what: client.post(address, json.dumps(body), "application/json")
        for what, address, body in (
            ("hook", f"/api/v1/jobs/{job.pk}/hooks/", {"name": name, "kind": "url"}),
            ("schedule", "/api/v1/schedules/", {"job": job.pk, "name": name, "type": "cron", "cron": "0 0 * * *"}),
            ("inputs", f"/api/v1/jobs/{job.pk}/inputs/", {"name": name, "rows": [{"pages": 1}]}),
        )
    }
    for what, answer in made.items():
        assert answer.status_code in (201, 400), f"{what}: {answer.status_code}"
        assert answer.status_code == 201 or answer.json()["detail"]
    if made["hook"].status_code == 201:
        called = Client().post(made["hook"].json()["url"], b"{}", "application/json")
        assert called.status_code == 202
        assert Run.objects.get(pk=called.json()["run"]).events.get().actor.startswith("hook: ")
    for address in (f"/jobs/{job.pk}/hooks/", f"/jobs/{job.pk}/", "/schedules/", "/batches/", "/admin/jobs/hook/"):
        text = client.get(address)
        assert text.status_code == 200, address
        if "<" in name:
            assert name not in text.content.decode().replace(escape(name), "")
