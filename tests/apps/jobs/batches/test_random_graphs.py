"""Whole batches of random graphs, in random order and with lost hints, against a recursive oracle."""

from __future__ import annotations

import random
from datetime import datetime
from functools import cache

import pytest

from apps.jobs.models import Job, Overlap
from apps.jobs.services import delete_job
from apps.jobs.services.batches import settle, settle_open
from apps.runs.models import Batch, Run
from apps.runs.states import State
from tests.apps.jobs.batches.chain import after, at_once, end, jobs_of, start, states
from tests.factories import AdminFactory

pytestmark = pytest.mark.django_db

NAMES = "abcdefgh"
ENDS = ("succeeded", "succeeded", "succeeded", "failed", "timed_out", "lost", "canceled")
GOOD = {"success": {"succeeded"}, "failure": {"failed", "timed_out", "lost"}}


class Plan:
    """A graph, and what each job comes to if its turn comes."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 (the same graphs each time)
        self.joins = {name: chance.choice(("all", "any")) for name in NAMES}
        self.ends = {name: chance.choice(ENDS) for name in NAMES}
        self.edges: dict[str, dict[str, str]] = {}
        for place, name in enumerate(NAMES[1:], 1):
            upstreams = chance.sample(NAMES[:place], chance.randint(1, min(3, place)))
            self.edges[name] = {each: chance.choice(("success", "success", "failure", "always")) for each in upstreams}

    def expected(self) -> dict[str, str]:
        @cache
        def end_of(name: str) -> str:
            met = [
                condition == "always" or end_of(upstream) in GOOD[condition]
                for upstream, condition in self.edges.get(name, {}).items()
            ]
            goes = not met or (all(met) if self.joins[name] == "all" else any(met))
            return self.ends[name] if goes else "skipped"

        return {name: end_of(name) for name in NAMES}

    def made(self) -> dict[str, Job]:
        jobs = dict(zip(NAMES, jobs_of(*NAMES, overlap=Overlap.ALLOW), strict=True))
        for name, upstreams in self.edges.items():
            for upstream, condition in upstreams.items():
                after(jobs[name], jobs[upstream], condition=condition, join=self.joins[name])
        return jobs


@pytest.mark.parametrize("seed", range(16))
def test_the_order_of_ends_and_lost_hints_make_no_difference(seed: int, now: datetime) -> None:
    plan, chance = Plan(seed), random.Random(-seed)  # noqa: S311
    jobs = plan.made()
    batch = start(jobs["a"], now)

    for _round in range(3 * len(NAMES)):
        ready = list(batch.runs.filter(state=State.QUEUED).values_list("job_name", flat=True))
        for name in chance.sample(ready, min(len(ready), chance.randint(1, 3))):
            end(batch, jobs[name], plan.ends[name], now, looked_at=chance.random() < 0.5)
        if chance.random() < 0.5:
            settle_open(now=now)
    settle_open(now=now)

    assert states(batch) == plan.expected()
    batch.refresh_from_db()
    assert batch.finished_at == now


@pytest.mark.django_db(transaction=True)
def test_jobs_are_deleted_while_their_batches_are_settled(now: datetime) -> None:
    """Both take locks on jobs, batches and runs: nobody waits for ever, and the batches go on."""
    first, *others = jobs_of("first", "b", "c", "d", overlap=Overlap.ALLOW)
    for other in others:
        after(other, first)
    several = [start(first, now) for _ in range(6)]
    for batch in several:
        end(batch, first, "succeeded", now, looked_at=False)
    admin = AdminFactory()

    def look() -> None:
        for batch in several:
            settle(batch_id=batch.pk, now=now)

    def delete() -> None:
        for job in others:
            delete_job(job=job, by=admin, now=now)

    assert not at_once(look, delete, look)
    assert set(Run.objects.exclude(job_name="first").values_list("state", flat=True)) == {"queued"}
    assert Batch.objects.filter(finished_at=None).count() == 6
