"""Many claimers at once, of one node and of several."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from apps.runs.models import Placement, Pool, Run
from apps.runs.states import PLACED, State
from tests.apps.runs.queued import MIB, claim, many, queued
from tests.factories import JobFactory, NodeFactory


def by_threads(work: Callable[[int], Any], threads: int = 8) -> list[Any]:
    def one(index: int) -> Any:
        try:
            return work(index)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(threads)))


@pytest.mark.django_db(transaction=True)
def test_a_pool_of_three_holds_under_two_hundred_runs_and_eight_claimers(now: datetime) -> None:
    pool = Pool.objects.create(name="shop.example", limit=3)
    nodes = [NodeFactory(slots=20) for _ in range(3)]
    many(queued(now, pools=[pool.pk], job=JobFactory()), 199)
    most = Counter[str]()

    def work(index: int) -> int:
        taken = 0
        for _ in range(200):
            if not Run.objects.filter(state=State.QUEUED).exists():
                break
            for run_id in claim(nodes[index % 3], now, limit=5, worker=f"w{index}"):
                taken += 1
                placed = Run.objects.filter(state__in=PLACED).count()
                most["placed"] = max(most["placed"], placed)
                Run.objects.filter(pk=run_id).update(state=State.SUCCEEDED)
        return taken

    taken = by_threads(work)
    assert sum(taken) == 200
    assert 1 <= most["placed"] <= 3
    assert set(Run.objects.values_list("token", "attempt", "state")) == {(1, 1, "succeeded")}


@pytest.mark.django_db(transaction=True)
def test_a_node_of_1024_mb_never_holds_more_under_eight_claimers(now: datetime) -> None:
    node = NodeFactory(slots=50, memory_bytes=1024 * MIB)
    many(queued(now, memory_bytes=256 * MIB, job=JobFactory()), 99)
    seen: list[int] = []

    def work(index: int) -> None:
        for _ in range(100):
            if not Run.objects.filter(state=State.QUEUED).exists():
                break
            taken = claim(node, now, limit=3, worker=f"w{index}")
            used = Run.objects.filter(state__in=PLACED).aggregate(memory=Sum("memory_bytes"))["memory"] or 0
            seen.append(used // MIB)
            Run.objects.filter(pk__in=taken).update(state=State.SUCCEEDED)

    by_threads(work)
    assert Run.objects.filter(state=State.SUCCEEDED).count() == 100
    assert max(seen) <= 1024
    assert max(seen) >= 512


@pytest.mark.django_db(transaction=True)
def test_a_job_that_allows_one_run_has_one_on_whatever_node(now: datetime) -> None:
    nodes = [NodeFactory(slots=20) for _ in range(4)]
    jobs = [JobFactory() for _ in range(5)]
    for job in jobs:
        many(queued(now, job=job, job_limit=1), 9)
    taken = by_threads(lambda index: claim(nodes[index % 4], now, worker=f"w{index}"))
    claimed = Run.objects.filter(pk__in=[run_id for ids in taken for run_id in ids])
    assert sorted(claimed.values_list("job", flat=True)) == [job.pk for job in jobs]


@pytest.mark.django_db(transaction=True)
def test_the_first_claims_ever_come_one_after_the_other_too(now: datetime) -> None:
    nodes = [NodeFactory() for _ in range(8)]
    Placement.objects.all().delete()
    many(queued(now, job=JobFactory(), job_limit=2), 30)
    taken = by_threads(lambda index: claim(nodes[index], now))
    assert sum(len(claimed) for claimed in taken) == 2
    assert Placement.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_being_stopped_is_not_waited_for(now: datetime) -> None:
    first, second = queued(now, minutes=1), queued(now)
    node = NodeFactory()

    def work(index: int) -> list[int]:
        if index:
            time.sleep(0.3)
            return claim(node, now)
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=first.pk)
            time.sleep(1)
        return []

    began = time.monotonic()
    assert by_threads(work, 2) == [[], [second.pk]]
    assert time.monotonic() - began < 5
