"""Forms of schedules, groups, dependencies and webhooks, sent with odd values: never a crash, never half a change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.core.cache import cache
from django.test import Client

from apps.core.actors import person
from apps.jobs.models import Firing, Hook, Job, Schedule
from apps.jobs.services import schedules
from apps.runs.models import Batch, Run
from tests.factories import AdminFactory, JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pages": {"type": "integer", "minimum": 1, "default": 3},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "key": {"type": "string", "writeOnly": True},
    },
}
ODD = (
    *("", " ", "x", "0", "-1", "1e9", "1.5", "on", "nan", "x" * 70_000, "9" * 30, "\x00", "\u202ex", "\x1b[31m"),
    *("{{ today }}", "{{ ''.__class__ }}", "{% now %}", "{{", "<script>alert(1)</script>", "'; DROP TABLE jobs_job"),
    *("0001-01-01T00:00", "9999-12-31T23:59", "2026-02-30T00:00", "2026-03-29T02:30", "2026-11-30", "[]", '{"a":'),
    *("* * * *", "0 0 31 2 *", "*/0 * * * *", "@daily", "~ * * * *", "1-99999999999 * * * *", "0\n0 * * *"),
    *("UTC", "Europe/Berlin", "../../etc/passwd", "Europe", "1h30m", "99999999999d", "-5m", "a,b\n1,2\n", "a\tb\n\n"),
)  # fmt: skip
# All of them take minutes: each form gets some of them, the same ones each time.
SOME = 3


class Fields(HTMLParser):
    """What a browser would send of a page's largest form, and the names of all its boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, list[str]]] = []
        self._select, self._area = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append({})
        if not self.forms:
            return
        name, form = given.get("name", ""), self.forms[-1]
        if tag == "input" and name:
            values = form.setdefault(name, [])
            if given.get("type") not in ("checkbox", "radio") or "checked" in given:
                values.append(given.get("value", ""))
        elif tag == "select" and name:
            self._select = name
            form.setdefault(name, [])
        elif tag == "option" and self._select and "selected" in given:
            form[self._select].append(given.get("value", ""))
        elif tag == "textarea" and name:
            self._area = name
            form[name] = [""]

    def handle_data(self, data: str) -> None:
        if self._area:
            self.forms[-1][self._area][0] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""
        elif tag == "select":
            self._select = ""

    @property
    def largest(self) -> dict[str, list[str]]:
        return max(self.forms, key=len)


FORMS = (
    "/jobs/{job}/schedules/new/",
    "/schedules/{schedule}/edit/",
    "/schedules/{schedule}/backfill/",
    "/jobs/{job}/inputs/",
    "/jobs/{job}/hooks/new/",
    "/jobs/{job}/edit/",
    "/jobs/{job}/run/",
)
ACTIONS = (
    ("/schedules/{schedule}/pause/", ("reason", "why", "until", "for")),
    ("/schedules/{schedule}/switch/", ("enabled", "on")),
    ("/schedules/{schedule}/resume/", ("x",)),
    ("/schedules/off/", ("reason", "why")),
    ("/schedules/preview/", ("type", "cron", "expression", "timezone", "every", "at", "preset", "after")),
)
QUERIES = (
    ("/jobs/{job}/ledger/", ("after", "outcome", "schedule", "since", "until", "at", "date")),
    ("/schedules/", ("q", "after", "state", "job", "spider", "kind")),
    ("/schedules/calendar/", ("date", "view", "job", "spider", "after", "q")),
    ("/schedules/preview/", ("type", "cron", "expression", "timezone", "every", "at", "preset", "after")),
    ("/schedules/{schedule}/backfill/", ("start", "end", "from", "to")),
    ("/jobs/{job}/inputs/", ("after", "column", "excel")),
    ("/batches/", ("after", "state", "kind", "job", "q", "open")),
    ("/jobs/{job}/run/", ("pages", "day", "tags", "x")),
    ("/api/v1/schedules/", ("job", "enabled", "after", "limit")),
    ("/api/v1/batches/", ("job", "kind", "open", "after", "limit")),
    ("/api/v1/jobs/{job}/ledger/", ("since", "until", "outcome", "schedule", "after", "limit")),
    ("/api/v1/jobs/{job}/ledger/why/", ("at",)),
    ("/api/v1/jobs/{job}/hooks/", ("after", "limit")),
    ("/api/v1/jobs/{job}/backfills/", ("after", "limit")),
)


@pytest.fixture
def names(now: datetime) -> dict[str, int]:
    job = JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA), overlap="allow", parameters={"pages": 1})
    made = schedules.create_schedule(
        job=job, by=person(AdminFactory()), now=now - timedelta(days=2), type="cron", cron="0 * * * *"
    )
    return {"job": job.pk, "schedule": made.pk}


@pytest.fixture
def page() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(AdminFactory(), backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


def everything() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (Job, Schedule, Firing, Hook, Batch, Run)]


def with_odd(fields: dict[str, list[str]], pick: random.Random) -> Iterator[dict[str, list[str]]]:
    few = len(fields) < 30
    for name in fields:
        if name != "csrfmiddlewaretoken":
            if few:
                yield {key: value for key, value in fields.items() if key != name}
            for odd in pick.sample(ODD, SOME if few else 1):
                yield {**fields, name: [odd]}


@pytest.mark.parametrize("address", FORMS)
def test_a_form_with_an_odd_value_is_saved_or_says_what_is_wrong(page: Client, names: dict[str, int], address: str):
    where = address.format(**names)
    reader = Fields()
    reader.feed(page.get(where).content.decode())
    assert len(reader.largest) > 1, reader.forms
    faults = []
    for sent in with_odd(reader.largest, random.Random(address)):  # noqa: S311
        cache.clear()
        before = everything()
        answer = page.post(where, sent)
        odd = {name: value for name, value in sent.items() if value != reader.largest[name]}
        said = f"{answer.status_code} for {str(odd)[:200]}"
        if answer.status_code >= 500:
            faults.append(said)
        elif answer.status_code >= 400 and (everything() != before or not says_why(answer)):
            faults.append(f"{said}: changed {everything() != before}, said {says_why(answer)}")
    assert not faults, f"{len(faults)}\n" + "\n".join(faults[:40])


def says_why(answer: Any) -> bool:
    text = answer.content.decode()
    return any(mark in text for mark in ("invalid-feedback", "alert-danger", "is-invalid", "claw-banner-red"))


@pytest.mark.parametrize(("address", "fields"), ACTIONS, ids=lambda value: str(value)[:40])
def test_an_odd_request_for_an_action_is_refused_or_done(page: Client, names: dict[str, int], address, fields):
    faults = []
    for name in fields:
        for odd in ODD:
            answer = page.post(address.format(**names), {name: odd})
            if answer.status_code >= 500:
                faults.append(f"{answer.status_code} for {name}={odd[:100]!r}")
            assert all(str(message) for message in get_messages(answer.wsgi_request))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("address", "fields"), QUERIES, ids=lambda value: str(value)[:40])
def test_an_odd_question_in_an_address_is_answered(page: Client, names: dict[str, int], address, fields):
    faults = []
    pick = random.Random(address)  # noqa: S311
    for name in fields:
        for odd in pick.sample(ODD, 2 * SOME):
            cache.clear()
            answer = page.get(address.format(**names), {name: odd[:2000]})
            if answer.status_code >= 500:
                faults.append(f"{answer.status_code} for {name}={odd[:100]!r}")
            if (
                not address.startswith("/api/")
                and "<script>alert(1)" in b"".join(answer if answer.streaming else [answer.content]).decode()
            ):
                faults.append(f"not escaped: {name}={odd[:100]!r}")
    assert not faults, "\n".join(faults)
