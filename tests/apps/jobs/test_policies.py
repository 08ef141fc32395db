"""What a job may say about limits, retries and places: taken as meant, and nonsense refused at its field."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.actors import SYSTEM
from apps.core.errors import Invalid
from apps.jobs.models import Job
from apps.jobs.services import create_job, run_job, update_job
from apps.runs.models import Pool
from apps.runs.policies import RetryPolicy
from apps.spiders.models import Spider
from tests.apps.jobs.nonsense import NONSENSE, Nonsense
from tests.factories import MIB, JobFactory, NodeFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return UserFactory()


@pytest.fixture
def spider() -> Spider:
    return SpiderFactory()


@pytest.mark.parametrize("case", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_refused_at_its_field_and_nothing_is_changed(case: Nonsense, user: User, now: datetime) -> None:
    job = JobFactory()

    with pytest.raises(Invalid) as excinfo:
        update_job(job=job, by=user, now=now, **case.changes)

    assert set(excinfo.value.fields) == {case.field}
    assert all(sentence for sentences in excinfo.value.fields.values() for sentence in sentences)
    fresh = Job.objects.get(pk=job.pk)
    assert (fresh.updated_at, fresh.retry, fresh.total_seconds) == (job.updated_at, {}, None)


def test_everything_said_is_kept_and_goes_into_the_order(spider: Spider, user: User, now: datetime) -> None:
    pools = [Pool.objects.create(name=name, limit=3) for name in ("shop.example", "proxy")]
    NodeFactory(labels={"zone": "eu", "browser": "yes"})
    repair = JobFactory(spider=spider, name="mend")
    user.is_superuser = True
    user.save()
    spider.current_version.exit_codes = {"3": {"success": True, "meaning": {"en": "nothing new"}}}
    spider.current_version.save()
    retry = {"attempts": 3, "backoff": "list", "delays": ["30s", "5m", 60], "never_codes": [2, 2], "items": "replace"}

    job = create_job(
        by=user,
        now=now,
        spider=spider,
        name="a",
        parameters={},
        timeout_seconds="1h30m",
        grace_seconds="30s",
        start_seconds="5m",
        idle_seconds=600,
        total_seconds="1d",
        queue_seconds="2 h",
        pause_seconds="90 min",
        overlap="allow",
        overlap_max=4,
        retry=retry,
        on_node_lost="wait",
        pools=["shop.example", pools[1].pk],
        selector={"zone": "eu"},
        repair_job=repair,
    )
    run, _new = run_job(job=Job.objects.get(pk=job.pk), by=SYSTEM, now=now, trigger="manual")

    assert run.spec["limits"] == {
        "memory_mb": 512,
        "cpus": 1.0,
        "timeout_seconds": 5400,
        "grace_seconds": 30,
        "start_seconds": 300,
        "idle_seconds": 600,
        "total_seconds": 86400,
        "queue_seconds": 7200,
        "pause_seconds": 5400,
    }
    kept = RetryPolicy.read(run.spec["retry"])
    assert (kept.attempts, kept.delays, kept.never_codes, kept.items) == (3, (30, 300, 60), (2,), "replace")
    assert run.spec["exit_codes"] == spider.current_version.exit_codes
    assert (run.spec["on_node_lost"], run.spec["repair_job"]) == ("wait", repair.pk)
    assert sorted(run.pools) == sorted(pool.pk for pool in pools)
    assert (run.selector, run.job_limit, run.cpus) == ({"zone": "eu"}, 4, 1.0)
    assert run.expires_at is not None
    assert (run.expires_at - now).total_seconds() == 7200


def test_a_limit_of_nothing_is_no_limit(user: User, now: datetime) -> None:
    job = JobFactory(idle_seconds=5, overlap="allow", overlap_max=3)

    update_job(job=job, by=user, now=now, idle_seconds=None, overlap_max=None)
    job.refresh_from_db()

    assert (job.idle_seconds, job.overlap_max) == (None, None)


def test_a_number_goes_with_the_overlap_that_counts(user: User, now: datetime) -> None:
    job = JobFactory(overlap="queue", overlap_max=3)

    update_job(job=job, by=user, now=now, overlap="skip")
    job.refresh_from_db()

    assert (job.overlap, job.overlap_max) == ("skip", None)


def test_a_pause_longer_than_the_cap_is_fine_where_no_cap_counts(user: User, now: datetime) -> None:
    job = update_job(job=JobFactory(), by=user, now=now, retry={"backoff": "fixed", "delay_seconds": "2h"})

    assert job.retry["delay_seconds"] == 7200


# -- what no node can take ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"memory_mb": 4097}, "memory_mb"),
        ({"cpus": 4.5}, "cpus"),
        ({"cpus": 8.0}, "cpus"),
        ({"selector": {"zone": "mars"}}, "selector"),
        ({"selector": {"zone": "eu", "browser": "yes"}}, "selector"),
        ({"selector": {"zone": "eu"}, "memory_mb": 2049}, "memory_mb"),
        ({"memory_mb": 3000, "cpus": 4.0}, "memory_mb"),
    ],
)
def test_what_no_known_node_can_take_is_refused(changes: dict[str, Any], field: str, user: User, now: datetime) -> None:
    NodeFactory(memory_bytes=4096 * MIB, cpus=2.0, labels={"browser": "yes"})
    NodeFactory(memory_bytes=2048 * MIB, cpus=4.0, labels={"zone": "eu"})

    with pytest.raises(Invalid) as excinfo:
        update_job(job=JobFactory(), by=user, now=now, **changes)

    assert set(excinfo.value.fields) == {field}


def test_the_largest_node_is_large_enough(user: User, now: datetime) -> None:
    NodeFactory(memory_bytes=4096 * MIB, cpus=4.0)

    update_job(job=JobFactory(), by=user, now=now, memory_mb=4096, cpus=4.0)


def test_anything_may_be_true_while_no_node_is_known(user: User, now: datetime) -> None:
    update_job(job=JobFactory(), by=user, now=now, memory_mb=99999, cpus=99.0, selector={"zone": "mars"})


def test_a_node_that_does_not_know_its_size_yet_refuses_nothing(user: User, now: datetime) -> None:
    NodeFactory(memory_bytes=0)

    update_job(job=JobFactory(), by=user, now=now, memory_mb=99999)


def test_a_job_too_large_for_the_nodes_of_today_can_still_be_renamed(user: User, now: datetime) -> None:
    job = JobFactory(memory_mb=9999)
    NodeFactory(memory_bytes=4096 * MIB)

    assert update_job(job=job, by=user, now=now, name="renamed").name == "renamed"
