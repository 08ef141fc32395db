"""Jobs that follow each other, for tests: written as they are, and ended by a stroke of the pen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Barrier, Thread
from typing import Any

from django.db import connection

from apps.core.actors import SYSTEM
from apps.jobs.models import Dependency, Job
from apps.jobs.services import run_job
from apps.jobs.services.batches import settle
from apps.runs.models import Batch, Run
from apps.runs.services import move
from apps.runs.states import State
from apps.spiders.models import Spider
from tests.factories import JobFactory, SpiderFactory


def jobs_of(*names: str, spider: Spider | None = None, **more: Any) -> list[Job]:
    spider = spider or SpiderFactory()
    return [JobFactory(name=name, spider=spider, **more) for name in names]


def after(job: Job, *upstreams: Job, condition: str = "success", join: str | None = None) -> None:
    for upstream in upstreams:
        Dependency.objects.create(job=job, upstream=upstream, condition=condition)
    if join is not None:
        Job.objects.filter(pk=job.pk).update(join=join)


def start(job: Job, now: datetime, **more: Any) -> Batch:
    run, _new = run_job(job=job, by=SYSTEM, now=now, trigger="manual", **more)
    assert run.batch is not None
    return run.batch


def run_of(batch: Batch, job: Job) -> Run:
    return Run.objects.get(batch=batch, batch_key=str(job.pk))


def states(batch: Batch) -> dict[str, str]:
    return dict(Run.objects.filter(batch=batch).order_by("pk").values_list("job_name", "state"))


def end(batch: Batch, job: Job, state: str, now: datetime, *, looked_at: bool = True, **fields: Any) -> Run:
    """Its queued run starts and ends; then the batch is looked at, unless the hint is lost."""
    run = run_of(batch, job)
    for frm, to in (("queued", "starting"), ("starting", "running"), ("running", state)):
        assert move(
            run_id=run.pk, to=State(to), frm=(State(frm),), now=now, actor=SYSTEM, **(fields if to == state else {})
        )
    if looked_at:
        settle(batch_id=batch.pk, now=now)
    run.refresh_from_db()
    return run


def at_once(*works: Callable[[], object]) -> list[BaseException]:
    """Each in a thread with a connection of its own, all let go at the same moment; what they raised."""
    together = Barrier(len(works))
    raised: list[BaseException] = []

    def do(work: Callable[[], object]) -> None:
        together.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (handed to the test)
            raised.append(error)
        finally:
            connection.close()

    threads = [Thread(target=do, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised
