"""A batch once more, from where it failed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from apps.core.actors import SYSTEM, Actor
from apps.jobs.models import Job
from apps.jobs.services.batches import NothingToRepeat, again_from_failed, settle, stop_batch
from apps.runs.models import Batch
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of, start, states
from tests.factories import RunFactory

pytestmark = pytest.mark.django_db


def again(batch: Batch, now: datetime) -> Batch:
    return again_from_failed(batch=batch, by=SYSTEM, now=now + timedelta(hours=1))


def taken_over(batch: Batch) -> dict[str, int]:
    return {node["name"]: node["settled"] for node in batch.graph["nodes"].values() if node.get("settled")}


def failed_in_the_middle(now: datetime) -> tuple[list[Job], Batch]:
    """a is well, b has failed, so c is skipped and its alarm has run; d, beside b, is well."""
    a, b, c, alarm, d = jobs_of("a", "b", "c", "alarm", "d")
    after(b, a)
    after(d, a)
    after(c, b, d)
    after(alarm, b, condition="failure")
    batch = start(a, now)
    end(batch, a, "succeeded", now)
    end(batch, d, "succeeded", now)
    end(batch, b, "failed", now)
    end(batch, alarm, "succeeded", now)
    batch.refresh_from_db()
    assert batch.finished_at is not None
    return [a, b, c, alarm, d], batch


def test_what_went_well_is_taken_over_and_the_rest_runs_again(now: datetime) -> None:
    (a, b, _c, _alarm, d), old = failed_in_the_middle(now)

    new = again(old, now)

    assert states(new) == {"b": "queued", "c": "waiting", "alarm": "waiting"}
    assert taken_over(new) == {"a": run_of(old, a).pk, "d": run_of(old, d).pk}
    assert (new.origin, new.job, new.trigger) == (old, old.job, "manual")
    assert run_of(new, b).trigger == "upstream"
    end(new, b, "succeeded", now)
    assert states(new) == {"b": "succeeded", "c": "queued", "alarm": "skipped"}


def test_it_may_fail_again_and_be_taken_up_again(now: datetime) -> None:
    (a, b, _c, alarm, _d), old = failed_in_the_middle(now)
    second = again(old, now)
    end(second, b, "failed", now)
    end(second, alarm, "succeeded", now)

    third = again(second, now)
    end(third, b, "succeeded", now)

    assert taken_over(third)["a"] == run_of(old, a).pk
    assert states(third)["c"] == "queued"


def test_the_orders_are_those_of_then(now: datetime) -> None:
    (_a, b, *_rest), old = failed_in_the_middle(now)
    Job.objects.filter(pk=b.pk).update(memory_mb=4096, priority=1)

    run = run_of(again(old, now), b)

    assert (run.spec, run.priority) == (run_of(old, b).spec, 5)
    assert run.scheduled_for == run_of(old, b).scheduled_for == now


def test_a_deleted_job_can_run_again(now: datetime) -> None:
    (_a, b, *_rest), old = failed_in_the_middle(now)
    b.delete()
    old.refresh_from_db()

    assert states(again(old, now))["b"] == "queued"


def test_a_failed_root_runs_again_with_everything(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)
    old = start(a, now)
    end(old, a, "timed_out", now)

    new = again_from_failed(batch=old, by=Actor("api", "robot"), now=now)

    assert states(new) == {"a": "queued", "b": "waiting"}
    assert (new.trigger, run_of(new, a).trigger, taken_over(new)) == ("api", "api", {})
    end(new, a, "succeeded", now)
    assert states(new) == {"a": "succeeded", "b": "queued"}


def test_a_stopped_batch_goes_on_where_it_was(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c")
    after(b, a)
    after(c, b)
    old = start(a, now)
    end(old, a, "succeeded", now)
    stop_batch(batch=old, by=SYSTEM, now=now)
    settle(batch_id=old.pk, now=now)
    old.refresh_from_db()

    assert states(again(old, now)) == {"b": "queued", "c": "waiting"}


def test_what_a_job_outside_has_kept_from_running_may_run_again(now: datetime) -> None:
    a, b, outside = jobs_of("a", "b", "outside")
    after(b, a, outside)
    old = start(a, now)
    end(old, a, "succeeded", now)
    assert states(old)["b"] == "skipped"
    RunFactory(job=outside, state="succeeded")
    old.refresh_from_db()

    assert states(again(old, now)) == {"b": "queued"}


def test_there_is_nothing_to_repeat_while_it_goes_on_or_when_all_went_well(now: datetime) -> None:
    a, b, alarm = jobs_of("a", "b", "alarm")
    after(b, a)
    after(alarm, a, condition="failure")
    batch = start(a, now)
    with pytest.raises(NothingToRepeat, match="goes on still"):
        again(batch, now)
    end(batch, a, "succeeded", now)
    end(batch, b, "succeeded", now)
    batch.refresh_from_db()

    with pytest.raises(NothingToRepeat, match="has failed"):
        again(batch, now)


def test_two_who_ask_at_once_get_one(now: datetime) -> None:
    _jobs, old = failed_in_the_middle(now)
    new = again(old, now)

    with pytest.raises(NothingToRepeat, match=f"Batch {new.pk} does that already"):
        again(old, now)
