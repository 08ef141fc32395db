"""A page of many rows asks the database no more questions than a page of few."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import person
from apps.jobs.models import CallHost, Dependency, Firing, Job, Outcome
from apps.jobs.services import Launch, launch, schedules
from apps.jobs.services.graph import set_dependencies
from apps.jobs.services.groups import start_inputs
from apps.runs.models import Run
from tests.factories import HookFactory, JobFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

PAGES = (
    *("/jobs/", "/jobs/{job}/", "/jobs/{job}/ledger/", "/jobs/{job}/hooks/", "/jobs/{job}/inputs/"),
    *("/schedules/", "/schedules/calendar/", "/schedules/{schedule}/backfill/", "/batches/", "/batches/{batch}/"),
    *("/batches/{group}/", "/runs/", "/runs/{run}/"),
)
API = (
    *("jobs/", "schedules/", "batches/", "batches/{batch}/", "batches/{group}/", "jobs/{job}/ledger/"),
    *("jobs/{job}/hooks/", "jobs/{job}/inputs/", "jobs/{job}/backfills/", "jobs/{job}/dependencies/", "runs/"),
)
ADMIN = ("jobs/job", "jobs/schedule", "jobs/firing", "jobs/hook", "jobs/callhost", "jobs/dependency", "runs/batch")
ADDRESSES = (*PAGES, *(f"/api/v1/{each}" for each in API), *(f"/admin/{each}/" for each in ADMIN))
SCHEMA = {"type": "object", "properties": {"pages": {"type": "integer"}}}


class World:
    """A job with more and more of everything around it, and a member of staff who owns its project."""

    def __init__(self, now: datetime) -> None:
        self.now, self.numbers = now, itertools.count()
        self.owner: User = UserFactory(is_staff=True)
        self.job: Job = self._job()
        grant(self.owner, "owner", self.job.project)
        self.names: dict[str, int] = {"job": self.job.pk}

    def _job(self, **more: Any) -> Job:
        spider = SpiderFactory(version__parameter_schema=SCHEMA, **more)
        return JobFactory(spider=spider, overlap="allow", overlap_max=1000)

    def grow(self, by: int) -> None:
        for _ in range(by):
            number = next(self.numbers)
            other = self._job(project=self.job.project)
            for job in (self.job, other):
                made = schedules.create_schedule(
                    job=job, by=person(self.owner), now=self.now, type="cron", cron=f"{number % 60} * * * *"
                )
                due = self.now - timedelta(minutes=number)
                run = RunFactory(job=job, schedule=made, scheduled_for=due, state="succeeded", finished_at=self.now)
                Firing.objects.create(
                    job=job, schedule=made, scheduled_for=due, outcome=Outcome.FIRED, run=run, decided_at=self.now
                )
                Firing.objects.create(
                    job=job,
                    schedule=made,
                    scheduled_for=due - timedelta(hours=1),
                    outcome=Outcome.SKIPPED,
                    reason="paused",
                    decided_at=self.now,
                )
            HookFactory(job=self.job, created_by=UserFactory())
            CallHost.objects.create(host=f"h{number}.example", created_at=self.now)
            set_dependencies(job=other, upstreams=[(self.job.pk, "success")], join="all", by=self.owner, now=self.now)
            group = start_inputs(
                job=other, rows=[{"pages": n + 1} for n in range(by)], by=person(self.owner), now=self.now
            )
        root = launch(wanted=Launch(job=self.job, trigger="manual"), by=person(self.owner), now=self.now)[0]
        assert root.batch_id
        self.names |= {"batch": root.batch_id, "group": group.pk, "schedule": made.pk, "run": root.pk}

    def questions(self, client: Client, address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(address.format(**self.names))
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        b"".join(answer) if answer.streaming else None
        return len(captured)


def test_no_list_asks_more_for_more_rows(now: datetime) -> None:
    world = World(now)
    client = Client()
    client.force_login(world.owner, backend="allauth.account.auth_backends.AuthenticationBackend")
    superuser = Client()
    superuser.force_login(
        UserFactory(is_staff=True, is_superuser=True), backend="allauth.account.auth_backends.AuthenticationBackend"
    )

    def asked() -> dict[str, int]:
        found = {}
        for address in ADDRESSES:
            who = superuser if address.startswith("/admin/") else client
            world.questions(who, address)
            found[address] = world.questions(who, address)
        return found

    world.grow(2)
    few = asked()
    world.grow(12)
    many = asked()
    assert Dependency.objects.count() == 14
    assert Run.objects.count() > 100
    more = {address: f"{few[address]} -> {many[address]}" for address in ADDRESSES if many[address] > few[address] + 1}
    assert not more, more
