"""Batches of jobs that follow each other, from their start to their end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from apps.core.actors import SYSTEM
from apps.jobs import tasks
from apps.jobs.models import Dependency, Job, Overlap
from apps.jobs.services import batches, delete_job, run_job
from apps.jobs.services.batches import settle, settle_open, settling
from apps.runs import reasons
from apps.runs.models import Batch, Run, RunEvent
from apps.runs.services import request_stop
from apps.runs.states import State
from tests.apps.jobs.batches.chain import after, at_once, end, jobs_of, run_of, start, states
from tests.factories import AdminFactory, JobFactory, RunFactory, SpiderFactory

pytestmark = pytest.mark.django_db


def test_a_launch_begins_a_batch_over_everything_that_follows(now: datetime) -> None:
    a, b, c, alone = jobs_of("a", "b", "c", "alone")
    after(b, a)
    after(c, b, condition="always")

    batch = start(a, now)

    assert states(batch) == {"a": "queued", "b": "waiting", "c": "waiting"}
    assert (batch.kind, batch.job, batch.job_name, batch.trigger) == ("graph", a, "a", "manual")
    root = f"{a.pk}"
    assert batch.graph == {
        "root": root,
        "nodes": {f"{job.pk}": {"job": job.pk, "name": job.name, "join": "all"} for job in (a, b, c)},
        "edges": [[root, f"{b.pk}", "success"], [f"{b.pk}", f"{c.pk}", "always"]],
    }
    assert run_of(batch, b).trigger == "upstream"
    assert run_job(job=alone, by=SYSTEM, now=now, trigger="manual")[0].batch is None


def test_runs_go_one_after_the_other(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c", queue_seconds=60)
    after(b, a)
    after(c, b)
    batch, later = start(a, now), now + timedelta(minutes=5)

    end(batch, a, "succeeded", later)

    assert states(batch) == {"a": "succeeded", "b": "queued", "c": "waiting"}
    run = run_of(batch, b)
    assert (run.queued_at, run.expires_at) == (later, later + timedelta(seconds=60))
    end(batch, b, "succeeded", later)
    assert Batch.objects.get().finished_at is None
    end(batch, c, "failed", later)
    batch.refresh_from_db()
    assert batch.finished_at == later


def test_what_follows_a_failure_is_skipped_and_says_for_which_run(now: datetime) -> None:
    a, b, c, d = jobs_of("a", "b", "c", "d")
    after(b, a)
    after(c, b)
    after(d, c, condition="always")
    batch = start(a, now)

    failed = end(batch, a, "failed", now, reason="exit_nonzero")

    assert states(batch) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "queued"}
    skipped = run_of(batch, b)
    assert skipped.reason == "upstream_failed"
    assert reasons.sentence(skipped) == (
        f"Skipped: it runs when job a succeeds, and run {failed.pk} of it has ended as “Failed”."
    )
    assert reasons.sentence(run_of(batch, c)) == (
        f"Skipped: it runs when job b succeeds, and run {skipped.pk} of it has ended as “Skipped”."
    )


def test_an_alarm_runs_when_something_fails_and_a_report_in_any_case(now: datetime) -> None:
    a, alarm, report = jobs_of("a", "alarm", "report")
    after(alarm, a, condition="failure")
    after(report, a, alarm, condition="always")

    well = start(a, now)
    end(well, a, "succeeded", now)
    ill = start(a, now)
    end(ill, a, "timed_out", now)

    assert states(well) == {"a": "succeeded", "alarm": "skipped", "report": "queued"}
    assert states(ill) == {"a": "timed_out", "alarm": "queued", "report": "waiting"}


def test_any_goes_with_the_first_and_only_once(now: datetime) -> None:
    a, b, c, d = jobs_of("a", "b", "c", "d", overlap=Overlap.ALLOW)
    after(b, a)
    after(c, a)
    after(d, b, c, join="any")
    batch = start(a, now)
    end(batch, a, "succeeded", now)

    end(batch, b, "failed", now)
    assert states(batch)["d"] == "waiting"
    end(batch, c, "succeeded", now)

    assert states(batch)["d"] == "queued"
    settle(batch_id=batch.pk, now=now)
    assert RunEvent.objects.filter(run=run_of(batch, d), kind="turn").count() == 1


def test_an_attempt_that_will_be_followed_by_another_settles_nothing(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)
    batch = start(a, now)

    end(batch, a, "retry_wait", now)

    assert states(batch) == {"a": "retry_wait", "b": "waiting"}


def test_a_child_that_is_canceled_is_neither_a_success_nor_a_failure(now: datetime) -> None:
    a, b, on_success, on_failure, always = jobs_of("a", "b", "on_success", "on_failure", "always")
    after(b, a)
    after(on_success, b)
    after(on_failure, b, condition="failure")
    after(always, b, condition="always")
    batch = start(a, now)

    request_stop(run=run_of(batch, b), by=SYSTEM, now=now)
    settle(batch_id=batch.pk, now=now)

    expected = {"b": "canceled", "on_success": "skipped", "on_failure": "skipped", "always": "queued"}
    assert states(batch) == {"a": "queued", **expected}


def test_a_skipped_launch_begins_no_batch(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)
    first = start(a, now)

    run, _new = run_job(job=a, by=SYSTEM, now=now, trigger="manual")

    assert (run.state, run.batch) == (State.SKIPPED, None)
    assert list(Batch.objects.all()) == [first]


def test_an_earlier_batch_of_the_job_does_not_hinder_a_child(now: datetime) -> None:
    """Its own limit does, in the queue."""
    a, b = jobs_of("a", "b")
    after(b, a)
    first = start(a, now)
    end(first, a, "succeeded", now)

    second = start(a, now)
    end(second, a, "succeeded", now)

    assert states(first) == states(second) == {"a": "succeeded", "b": "queued"}
    assert run_of(second, b).job_limit == 1


def test_a_child_that_waits_in_a_batch_does_not_hinder_a_launch_of_its_own(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)
    start(a, now)

    assert run_job(job=b, by=SYSTEM, now=now, trigger="manual")[0].state == State.QUEUED


def test_batches_of_one_root_at_once_do_not_mix(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c", overlap=Overlap.ALLOW)
    after(b, a)
    after(c, b, condition="failure")
    several = [start(a, now) for _ in range(3)]

    for batch, outcome in zip(several, ("succeeded", "failed", "lost"), strict=True):
        end(batch, a, outcome, now)
    end(several[0], b, "failed", now)

    assert [states(batch) for batch in several] == [
        {"a": "succeeded", "b": "failed", "c": "queued"},
        {"a": "failed", "b": "skipped", "c": "skipped"},
        {"a": "lost", "b": "skipped", "c": "skipped"},
    ]
    assert Run.objects.count() == 9


@pytest.mark.parametrize("trigger", ["repair", "backfill", "inputs"])
def test_a_run_that_is_about_one_job_begins_no_batch(trigger: str, now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)

    assert run_job(job=a, by=SYSTEM, now=now, trigger=trigger)[0].batch is None


def test_a_repeated_key_answers_with_the_run_of_then_and_its_batch(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)

    first = start(a, now, idempotency_key="k")
    again = start(a, now, idempotency_key="k")

    assert first == again
    assert Run.objects.count() == 2


# -- jobs that change in the middle ---------------------------------------------------------------------------------


def test_editing_a_job_in_the_middle_disturbs_no_batch(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c")
    after(b, a)
    after(c, b)
    batch = start(a, now)

    Dependency.objects.all().delete()
    Job.objects.filter(pk=b.pk).update(parameters={"broken": True}, join="any", name="renamed")
    end(batch, a, "succeeded", now)
    end(batch, b, "succeeded", now)

    assert states(batch) == {"a": "succeeded", "b": "succeeded", "c": "queued"}
    assert run_of(batch, b).spec["parameters"] == {}


def test_deleting_a_job_in_the_middle_disturbs_no_batch(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c")
    after(b, a)
    after(c, b, condition="failure")
    batch = start(a, now)

    for job in (a, b):
        delete_job(job=Job.objects.get(pk=job.pk), by=AdminFactory(), now=now)
    end(batch, a, "succeeded", now)
    assert states(batch) == {"a": "succeeded", "b": "queued", "c": "waiting"}
    end(batch, b, "failed", now)

    assert states(batch)["c"] == "queued"
    batch.refresh_from_db()
    assert (batch.job, batch.job_name) == (None, "a")
    assert [node["name"] for node in batch.graph["nodes"].values()] == ["a", "b", "c"]


def test_a_job_that_cannot_be_ordered_counts_as_failed_and_stops_no_other(now: datetime) -> None:
    a, broken, alarm = jobs_of("a", "broken", "alarm")
    after(broken, a)
    after(alarm, broken, condition="failure")
    Job.objects.filter(pk=broken.pk).update(spider=SpiderFactory(project=a.project), parameters={})
    broken.refresh_from_db()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    broken.spider.current_version.parameter_schema = schema
    broken.spider.current_version.save()

    batch = start(a, now)

    assert states(batch) == {"a": "queued", "alarm": "waiting"}
    assert batch.graph["nodes"][f"{broken.pk}"]["trouble"]
    settle(batch_id=batch.pk, now=now)
    assert states(batch)["alarm"] == "waiting"
    end(batch, a, "succeeded", now)
    assert states(batch)["alarm"] == "queued"


# -- jobs outside ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [([], "skipped"), (["failed", "succeeded"], "queued"), (["succeeded", "failed"], "skipped")],
)
def test_a_job_outside_counts_by_its_newest_finished_run(earlier: list[str], expected: str, now: datetime) -> None:
    a, b, outside = jobs_of("a", "b", "outside")
    after(b, a, outside)
    batch = start(a, now)
    for state in earlier:
        RunFactory(job=outside, state=state)
    # Neither of them is a finished run.
    RunFactory(job=outside, state=State.SKIPPED)
    RunFactory(job=outside, state=State.RUNNING)

    end(batch, a, "succeeded", now)

    run = run_of(batch, b)
    assert run.state == expected
    if not earlier:
        assert reasons.sentence(run) == "Skipped: it runs when job outside succeeds, and that has never finished a run."


def test_a_job_outside_that_is_deleted_counts_by_what_it_was(now: datetime) -> None:
    a, b, outside = jobs_of("a", "b", "outside")
    after(b, a, outside)
    RunFactory(job=outside, state=State.SUCCEEDED)
    batch = start(a, now)

    outside.delete()
    end(batch, a, "succeeded", now)

    assert states(batch)["b"] == "queued"


# -- deaths and lost hints -------------------------------------------------------------------------------------------


def test_an_evaluator_killed_after_one_of_two_children_harms_nothing(now: datetime, monkeypatch: Any) -> None:
    a, b, c = jobs_of("a", "b", "c")
    after(b, a)
    after(c, a)
    batch = start(a, now)
    end(batch, a, "succeeded", now, looked_at=False)
    give_turn, given = settling.give_turn, []

    def killed(**kwargs: Any) -> None:
        if given:
            raise KeyboardInterrupt
        given.append(kwargs)
        give_turn(**kwargs)

    monkeypatch.setattr(settling, "give_turn", killed)
    with pytest.raises(KeyboardInterrupt), transaction.atomic():
        settle(batch_id=batch.pk, now=now)
    assert states(batch) == {"a": "succeeded", "b": "waiting", "c": "waiting"}
    monkeypatch.undo()

    assert settle_open(now=now) == 1

    assert states(batch) == {"a": "succeeded", "b": "queued", "c": "queued"}
    assert RunEvent.objects.filter(kind="turn").count() == 2


def test_a_broken_batch_keeps_no_other_waiting(now: datetime) -> None:
    a, b = jobs_of("a", "b", overlap=Overlap.ALLOW)
    after(b, a)
    broken, sound = start(a, now), start(a, now)
    Batch.objects.filter(pk=broken.pk).update(graph={"nodes": {"1": {}}})
    end(sound, a, "succeeded", now, looked_at=False)

    tasks.settle_batches()

    assert states(sound)["b"] == "queued"


def test_the_end_of_a_run_is_a_hint(
    now: datetime, django_capture_on_commit_callbacks: Callable[..., Any], monkeypatch: Any
) -> None:
    sent: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr("apps.jobs.receivers.enqueue", lambda name, **kwargs: sent.append((name, kwargs)))
    a, b = jobs_of("a", "b")
    after(b, a)
    batch = start(a, now)

    with django_capture_on_commit_callbacks(execute=True):
        end(batch, a, "succeeded", now, looked_at=False)
        RunFactory(state=State.QUEUED)

    assert sent == [("jobs.settle_batches", {"batch_id": batch.pk})]


@pytest.mark.django_db(transaction=True)
def test_many_evaluators_at_once_give_each_turn_once(now: datetime) -> None:
    a, *children = jobs_of("a", *(f"child {n}" for n in range(6)))
    for child in children:
        after(child, a)
    batch = start(a, now)
    end(batch, a, "succeeded", now, looked_at=False)
    assert not at_once(*[lambda: settle(batch_id=batch.pk, now=now)] * 6)

    assert RunEvent.objects.filter(kind="turn").count() == 6
    assert RunEvent.objects.filter(to_state="queued", from_state="waiting").count() == 6


@pytest.mark.django_db(transaction=True)
def test_launches_from_both_ends_of_a_chain_do_not_wait_for_each_other(now: datetime) -> None:
    """Their ids are not in the order in which they follow: whoever locked along the chain would meet the other."""
    c, b, a = jobs_of("c", "b", "a", overlap=Overlap.ALLOW)
    x = JobFactory(spider=a.spider, overlap=Overlap.ALLOW)
    after(b, a, x)
    after(c, b, a)

    def launch(job: Job) -> None:
        for _ in range(10):
            run_job(job=job, by=SYSTEM, now=now, trigger="manual")

    assert not at_once(*(partial(launch, job) for job in (a, b, c, x)))
    assert Batch.objects.count() == 30


def test_batches_offer_all_that_others_need() -> None:
    assert batches.jobs_with_followers(job_ids=[]) == set()
