"""Whatever is sent to the addresses of schedules, groups and webhooks: an answer in words, and nothing half done."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from psycopg import sql
from rest_framework.test import APIClient

from apps.core.actors import person
from apps.jobs.models import CallHost, Job, Schedule
from apps.jobs.services import schedules
from tests.factories import AdminFactory, JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pages": {"type": "integer", "minimum": 1},
        "day": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "key": {"type": "string", "writeOnly": True},
    },
}
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e300, 10**18, -(10**18)),
    *("", " ", "x", "0", "-1", "1e9", "nan", "null", "x" * 70_000, "\u202ex\u2066", "\x1b[31m", "\x7f", "é" * 300),
    *("{{ today }}", "{{ ''.__class__ }}", "{% now %}", "{{", "}}", "{{ params.key }}", "{{ upstream.x.y }}"),
    *("{{ today | offset:\"-99999999999d\" }}", "{{ call.a.b }}", "{{ now | date:\"%Y%\" }}"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-02-30T00:00:00Z", "1970-01-01T00:00:00Z"),
    *("2026-03-29T02:30:00", "2026-11-30", "8999-12-31T23:59:59Z"),
    *("* * * *", "* * * * * *", "0 0 31 2 *", "*/0 * * * *", "60 * * * *", "@daily", "@nope", "~ * * * *", "٣ * * * *"),
    *("1-99999999999 * * * *", "*," * 400 + "* * * * *", "0 0 L * *", "0\n0 * * *", "0 0 * * mon#2"),
    *("UTC", "Europe/Berlin", "europe/berlin", "../../etc/passwd", "/etc/localtime", "Mars/Base"),
    *("posix/UTC", "localtime", "Europe"),
    *("1h30m", "99999999999d", "1e5s", "-5m"),
    *([], [[]], [None], [1, "a"], ["x"] * 2000, {}, {"": ""}, {"a": {"b": [1]}}, {"pages": "{{ x }}"}),
    *({"key": "x" * 70_000}, {"key": None}),
    *({"pages": 10**18}, {"day": "{{ today }}"}, [{"pages": "1"}], [{"pages": "x"}], [{}] * 1500, [{"key": "a"}]),
)  # fmt: skip


@pytest.fixture
def world(now) -> tuple[APIClient, Job, Schedule]:
    admin = AdminFactory()
    job = JobFactory(spider=SpiderFactory(kind="command", version__parameter_schema=SCHEMA), overlap="allow")
    JobFactory(spider=job.spider)
    CallHost.objects.create(host="api.example.com", created_at=now)
    schedule = schedules.create_schedule(
        job=job, by=person(admin), now=now - timedelta(days=2), type="cron", cron="0 * * * *"
    )
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(admin)
    return client, job, schedule


# All of them take minutes: each test takes some of them, the same ones each time.
SOME = 4


def bodies(valid: dict[str, Any], pick: random.Random) -> Iterator[dict[str, Any]]:
    """The valid body with one field after the other left out and replaced, also inside of objects."""
    for name, value in valid.items():
        without = copy.deepcopy(valid)
        del without[name]
        yield without
        for odd in pick.sample(ODD, SOME):
            yield {**valid, name: odd}
        if isinstance(value, dict):
            yield from ({**valid, name: inner} for inner in bodies(value, pick))


def addresses(job: Job, schedule: Schedule, now: Any) -> dict[str, tuple[str, str, dict[str, Any]]]:
    api = f"/api/v1/jobs/{job.pk}"
    start, end = (now - timedelta(hours=5)).isoformat(), (now - timedelta(hours=1)).isoformat()
    every = {"name": "n", "timezone": "UTC", "start_at": None, "end_at": None, "jitter": 0, "enabled": True}
    every |= {"parameters": {"pages": 1}, "misfire": {"policy": "all", "grace": 60, "cap": 5, "spacing": 1}}
    call = {"method": "POST", "url": "https://api.example.com/x", "headers": {"A": "b"}, "body": ""}
    preview = {"timezone": "UTC", "after": now.isoformat(), "count": 3, "seed": 1}
    return {
        "cron": ("POST", "/api/v1/schedules/", {"job": job.pk, "type": "cron", "cron": "0 0 * * *", **every}),
        "interval": (
            "POST",
            "/api/v1/schedules/",
            {"job": job.pk, "type": "interval", "every": 60, "anchor_at": None, **every},
        ),
        "once": (
            "POST",
            "/api/v1/schedules/",
            {"job": job.pk, "type": "once", "at": (now + timedelta(days=1)).isoformat(), **every},
        ),
        "change": ("PATCH", f"/api/v1/schedules/{schedule.pk}/", {"cron": "5 * * * *", **every}),
        "pause": ("POST", f"/api/v1/schedules/{schedule.pk}/pause/", {"reason": "r", "until": None}),
        "off": ("POST", "/api/v1/scheduling/off/", {"reason": "r"}),
        "preview": ("POST", "/api/v1/schedules/preview/", {"type": "cron", "cron": "0 0 * * *", **preview}),
        "preview interval": (
            "POST",
            "/api/v1/schedules/preview/",
            {"type": "interval", "every": 5, "anchor_at": now.isoformat(), **preview},
        ),
        "preview once": ("POST", "/api/v1/schedules/preview/", {"type": "once", "at": end, **preview}),
        "backfill": (
            "POST",
            f"{api}/backfills/",
            {"schedule": schedule.pk, "start": start, "end": end, "again": False, "concurrency": 1, "priority": None},
        ),
        "backfill preview": (
            "POST",
            f"{api}/backfills/",
            {"schedule": schedule.pk, "start": start, "end": end, "preview": True},
        ),
        "backfill instants": (
            "POST",
            f"{api}/backfills/",
            {"schedule": schedule.pk, "instants": [now.replace(minute=0, second=0, microsecond=0).isoformat()]},
        ),
        "inputs": ("POST", f"{api}/inputs/", {"rows": [{"pages": 2}], "name": "", "concurrency": 2}),
        "inputs csv": ("POST", f"{api}/inputs/", {"csv": "pages\n1\n2", "column": "", "concurrency": 2}),
        "parameters": (
            "POST",
            "/api/v1/jobs/preview-parameters/",
            {
                "job": job.pk,
                "parameters": {"day": "{{ today }}", "pages": 1},
                "arguments": ["a"],
                "env": {"A": "{{ yesterday }}"},
                "scheduled_for": None,
                "timezone": "UTC",
                "calls": False,
            },
        ),
        "dependencies": ("PUT", f"{api}/dependencies/", {"upstreams": [], "join": "all"}),
        "dependency": (
            "PUT",
            f"{api}/dependencies/",
            {"upstreams": [{"job": job.pk + 1, "condition": "failure"}], "join": "any"},
        ),
        "job": (
            "PATCH",
            f"{api}/",
            {"arguments": ["--day", "{{ today }}"], "env": {"DAY": "{{ yesterday }}"}, "parameters": {}},
        ),
        "calls": ("PATCH", f"{api}/", {"calls": {"shop": call}}),
        "hook": ("POST", f"{api}/hooks/", {"name": "h", "kind": "url", "mapping": {"pages": "a.b"}, "per_minute": 5}),
    }


NAMES = list(addresses(Job(pk=1), Schedule(pk=1), datetime.now(UTC)))


def rows_of_everything() -> dict[str, int]:
    ours = ("jobs_", "runs_", "django_celery_beat_", "spiders_secret")
    # Partitions are counted with their table.
    tables = [name for name in connection.introspection.table_names() if name.startswith(ours) and "_p2" not in name]
    with connection.cursor() as cursor:
        counts = [sql.SQL("(SELECT count(*) FROM {})").format(sql.Identifier(table)) for table in tables]
        cursor.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(counts)).as_string())
        return dict(zip(tables, cursor.fetchone(), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_whatever_stands_in_a_field_is_answered_in_words(world, now, name):
    client, job, schedule = world
    method, address, valid = addresses(job, schedule, now)[name]
    assert client.generic(method, address, dumps(valid), "application/json").status_code < 300
    faults = []
    before = rows_of_everything()
    for body in bodies(valid, random.Random(name)):  # noqa: S311
        cache.clear()
        answer = client.generic(method, address, dumps(body), "application/json")
        after = rows_of_everything()
        said = f"{answer.status_code} for {str(body)[:300]}: {answer.content[:300].decode(errors='replace')}"
        if answer.status_code >= 500:
            faults.append(said)
        elif answer.status_code >= 400:
            refusal = answer.json()
            if not refusal["detail"].strip() or "Traceback" in refusal["detail"] or after != before:
                faults.append(f"{said} {[t for t in after if after[t] != before[t]]}")
        before = after
    assert not faults, f"{len(faults)}\n" + "\n".join(faults[:40])


def dumps(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()
