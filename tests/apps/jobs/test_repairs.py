"""Repair jobs: which may be chosen, and how their runs come about."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.errors import Invalid
from apps.jobs.models import Job
from apps.jobs.services import delete_job, run_job, start_repairs, update_job
from apps.runs import reasons
from apps.runs.models import Run, RunEvent
from apps.runs.states import State, Trigger
from apps.spiders.models import Spider
from tests.factories import AdminFactory, JobFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def spider() -> Spider:
    return SpiderFactory()


def choose(job: Job, repair: Job | int | None, by: User, now: datetime) -> None:
    update_job(job=job, by=by, now=now, repair_job=repair)


def refused(job: Job, repair: Job, by: User, now: datetime) -> str:
    with pytest.raises(Invalid) as excinfo:
        choose(job, repair, by, now)
    return excinfo.value.fields["repair_job"][0]


# -- choosing one -------------------------------------------------------------------------------------------------


def test_a_job_of_the_project_that_one_may_run_can_be_chosen_and_let_go(spider: Spider, now: datetime) -> None:
    job, repair = JobFactory.create_batch(2, spider=spider)
    user = UserFactory()
    grant(user, "runner", repair)

    choose(job, repair.pk, user, now)
    job.refresh_from_db()
    assert job.repair_job == repair

    choose(job, None, user, now)
    job.refresh_from_db()
    assert job.repair_job is None


def test_a_job_one_cannot_see_does_not_exist(spider: Spider, now: datetime) -> None:
    job, repair = JobFactory.create_batch(2, spider=spider)

    assert refused(job, repair, UserFactory(), now) == "There is no such job."


def test_seeing_a_job_is_not_enough(spider: Spider, now: datetime) -> None:
    job, repair = JobFactory.create_batch(2, spider=spider)
    user = UserFactory()
    grant(user, "viewer", repair)

    assert refused(job, repair, user, now) == "You may not run this job."


def test_a_choice_of_somebody_else_may_stay(spider: Spider, now: datetime) -> None:
    repair = JobFactory(spider=spider)
    job = JobFactory(spider=spider, repair_job=repair)

    update_job(job=job, by=UserFactory(), now=now, repair_job=repair.pk, name="renamed")


def test_a_job_of_another_project_is_refused(now: datetime) -> None:
    assert "same project" in refused(JobFactory(), JobFactory(), AdminFactory(), now)


def test_a_circle_is_refused_and_its_way_is_told(spider: Spider, now: datetime) -> None:
    c = JobFactory(spider=spider, name="c")
    b = JobFactory(spider=spider, name="b", repair_job=c)
    a = JobFactory(spider=spider, name="a", repair_job=b)

    assert refused(c, a, AdminFactory(), now) == "Repairs would go round in a circle: c → a → b → c."


def test_a_job_cannot_repair_itself(spider: Spider, now: datetime) -> None:
    job = JobFactory(spider=spider, name="a")

    assert "a → a" in refused(job, job, AdminFactory(), now)


def test_the_way_does_not_tell_names_one_may_not_see(spider: Spider, now: datetime) -> None:
    hidden = JobFactory(spider=spider, name="hidden")
    repair = JobFactory(spider=spider, name="mend", repair_job=hidden)
    job = JobFactory(spider=spider, name="mine")
    Job.objects.filter(pk=hidden.pk).update(repair_job=job)
    user = UserFactory()
    grant(user, "runner", repair)

    sentence = refused(job, repair, user, now)

    assert f"mine → mend → #{hidden.pk} → mine" in sentence


def test_a_circle_that_is_there_already_ends_the_search(spider: Spider, now: datetime) -> None:
    job, a, b = JobFactory.create_batch(3, spider=spider)
    Job.objects.filter(pk=a.pk).update(repair_job=b)
    Job.objects.filter(pk=b.pk).update(repair_job=a)

    choose(job, a, AdminFactory(), now)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_half_a_circle_each_one_is_refused(now: datetime) -> None:
    spider, user = SpiderFactory(), AdminFactory()
    for _round in range(5):
        a, b = JobFactory.create_batch(2, spider=spider)
        barrier = Barrier(2)

        def save(pair: tuple[Job, Job], barrier: Barrier = barrier) -> bool:
            barrier.wait(30)
            try:
                choose(*pair, user, now)
            except Invalid:
                return False
            finally:
                connection.close()
            return True

        with ThreadPoolExecutor(2) as pool:
            saved = list(pool.map(save, [(a, b), (b, a)]))

        assert sorted(saved) == [False, True]
        assert Job.objects.filter(pk__in=(a.pk, b.pk), repair_job=None).count() == 1


# -- running it ---------------------------------------------------------------------------------------------------

TAKES_RUN = {"type": "object", "properties": {"failed_run": {"type": "integer"}}, "additionalProperties": False}


def failed_run(repair: Job, **more: Any) -> Run:
    """A run that has used up its attempts, as its agent leaves it behind."""
    run = RunFactory(job=JobFactory(spider__project=repair.project), state=State.FAILED, repair_due=True, **more)
    run.spec["repair_job"] = repair.pk
    run.save()
    return run


def test_a_repair_run_learns_which_run_it_is_for(now: datetime) -> None:
    repair = JobFactory(spider__version__parameter_schema=TAKES_RUN, env={"MODE": "x"})
    failed = failed_run(repair)

    assert start_repairs(now=now) == 1

    run = Run.objects.get(job=repair)
    assert (run.trigger, run.state, run.requested_by) == (Trigger.REPAIR, State.QUEUED, None)
    assert run.spec["parameters"] == {"failed_run": failed.pk}
    assert run.spec["env"] == {"MODE": "x", "CLAW_FAILED_RUN": str(failed.pk)}
    events = RunEvent.objects.filter(kind="repair").order_by("pk")
    assert [(event.run, reasons.sentence(event)) for event in events] == [
        (failed, f"Run {run.pk} of job {repair.name}."),
        (run, f"It was asked for because run {failed.pk} had failed for good."),
    ]


def test_a_text_parameter_gets_the_number_as_text(now: datetime) -> None:
    schema = {"type": "object", "properties": {"failed_run": {"type": "string"}}}
    failed = failed_run(JobFactory(spider__version__parameter_schema=schema))
    start_repairs(now=now)

    assert Run.objects.get(trigger=Trigger.REPAIR).spec["parameters"] == {"failed_run": str(failed.pk)}


def test_a_spider_without_the_parameter_still_has_the_variable(now: datetime) -> None:
    repair = JobFactory()
    failed = failed_run(repair)
    start_repairs(now=now)

    run = Run.objects.get(job=repair)
    assert (run.spec["parameters"], run.spec["env"]) == ({}, {"CLAW_FAILED_RUN": str(failed.pk)})


def test_asking_again_starts_nothing_again(now: datetime) -> None:
    repair = JobFactory(overlap="allow")
    failed = failed_run(repair)

    assert start_repairs(now=now) == 1
    assert start_repairs(now=now) == 0
    Run.objects.filter(pk=failed.pk).update(repair_due=True)
    assert start_repairs(now=now) == 0

    assert Run.objects.filter(job=repair).count() == 1
    assert not Run.objects.filter(repair_due=True).exists()


@pytest.mark.django_db(transaction=True)
def test_eight_who_ask_at_once_start_one_repair_for_each_run(now: datetime) -> None:
    repair = JobFactory(overlap="allow")
    for _ in range(5):
        failed_run(repair)
    barrier = Barrier(8)

    def ask(_number: int) -> int:
        barrier.wait(30)
        try:
            return start_repairs(now=now)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        started = sum(pool.map(ask, range(8)))

    assert started == Run.objects.filter(job=repair).count() == 5


def test_a_failed_repair_is_not_repaired(now: datetime) -> None:
    further = JobFactory()
    repair = JobFactory(spider__project=further.project, repair_job=further)
    failed_run(repair)
    start_repairs(now=now)
    run = Run.objects.get(job=repair)

    assert run.spec["repair_job"] is None
    Run.objects.filter(pk=run.pk).update(repair_due=True)
    assert start_repairs(now=now) == 0
    assert not Run.objects.filter(job=further).exists()


def test_a_repair_job_that_is_gone_is_said_in_the_failed_run(now: datetime) -> None:
    repair = JobFactory()
    failed = failed_run(repair)
    delete_job(job=repair, by=UserFactory(), now=now)

    assert start_repairs(now=now) == 0

    event = RunEvent.objects.get(run=failed)
    assert "has been deleted" in reasons.sentence(event)
    assert not Run.objects.filter(repair_due=True).exists()


def test_a_repair_that_cannot_be_run_is_said_and_not_tried_for_ever(now: datetime) -> None:
    schema = {"type": "object", "properties": {"site": {"type": "string"}}, "required": ["site"]}
    repair = JobFactory(spider__version__parameter_schema=schema)
    failed, other = failed_run(repair), failed_run(JobFactory())

    assert start_repairs(now=now) == 1

    assert reasons.sentence(RunEvent.objects.get(run=failed)).startswith(f"Repair job {repair.name} could not be run")
    assert RunEvent.objects.get(run=other).reason == "repair_run"
    assert not Run.objects.filter(repair_due=True).exists()


def test_a_repair_that_breaks_does_not_keep_the_others_waiting(
    now: datetime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, fine = JobFactory(), JobFactory()
    first, _second = failed_run(broken), failed_run(fine)

    def break_down(*, job: Job, **given: Any) -> Any:
        if job == broken:
            raise ArithmeticError
        return run_job(job=job, **given)

    monkeypatch.setattr("apps.jobs.services.repairs.run_job", break_down)

    assert start_repairs(now=now) == 1
    assert list(Run.objects.filter(repair_due=True)) == [first]
    assert f"the repair of run {first.pk} could not be started" in caplog.text
