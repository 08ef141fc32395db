"""What a job put out becomes a parameter of those that follow it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.core.actors import SYSTEM
from apps.jobs.models import Job
from apps.jobs.services import run_job
from apps.jobs.services.batches import again_from_failed, settle
from apps.jobs.services.rendering import prepare
from apps.runs import reasons
from apps.runs.models import Batch, Run
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of
from tests.factories import SpiderFactory

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}, "text": {"type": "string"}}}


def pair(now: datetime, **parameters: Any) -> tuple[list[Job], Batch]:
    spider = SpiderFactory(version__parameter_schema=SCHEMA)
    first, second = jobs_of("first", "second", spider=spider)
    Job.objects.filter(pk=second.pk).update(parameters=parameters)
    after(second, first)
    batch = run_job(job=first, by=SYSTEM, now=now, trigger="manual")[0].batch
    assert batch is not None
    return [first, second], batch


def following(now: datetime, output: Any, **parameters: Any) -> Run:
    """The run of the second job, prepared after the first has put out `output`."""
    (first, second), batch = pair(now, **parameters)
    assert run_of(batch, second).spec["pending"]
    end(batch, first, "succeeded", now, output=output)
    prepare(run_id=run_of(batch, second).pk, now=now)
    return run_of(batch, second)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("; rm -rf /", "; rm -rf /"),
        ("two\nlines and \"both\" 'quotes'", "two\nlines and \"both\" 'quotes'"),
        ("$(id) `id` ${HOME} %s {{ yesterday }}", "$(id) `id` ${HOME} %s {{ yesterday }}"),
        ("汉字 \u202e \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "汉字 \u202e 😀"),
        ("x" * 65_000, "x" * 65_000),
        ("", ""),
    ],
)
def test_a_text_arrives_as_it_was(value: str, expected: str, now: datetime) -> None:
    run = following(now, {"text": value}, text="{{ upstream.first.text }}")

    assert (run.state, run.spec["parameters"]) == ("queued", {"text": expected})


@pytest.mark.parametrize("value", [12, "12", 12.0])
def test_a_number_is_one_where_the_schema_says_so(value: Any, now: datetime) -> None:
    run = following(now, {"n": value}, count="{{ upstream.first.n }}")

    assert (run.state, run.spec["parameters"]) == ("queued", {"count": 12})


@pytest.mark.parametrize(
    "output", [{}, {"other": 1}, {"n": None}, {"n": "many"}, {"n": [1]}, {"n": {"a": 1}}, {"n": 1.5}, {"n": True}]
)
def test_an_output_that_is_missing_or_of_another_type_fails_the_run(output: Any, now: datetime) -> None:
    run = following(now, output, count="{{ upstream.first.n }}")

    assert (run.state, run.reason) == ("failed", "param_error")
    assert reasons.sentence(run).startswith("Its parameters cannot be used.")


def test_its_turn_leads_to_its_preparation_and_not_to_the_queue(now: datetime, monkeypatch: Any) -> None:
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr("apps.jobs.services.turns.enqueue", lambda name, **more: sent.append((name, more)))
    (first, second), batch = pair(now, count="{{ upstream.first.n }}")

    end(batch, first, "succeeded", now, output={"n": 3})
    settle(batch_id=batch.pk, now=now)

    run = run_of(batch, second)
    assert run.state == "waiting"
    assert sent == [("jobs.prepare", {"run_id": run.pk})]


def test_dates_are_of_the_time_of_the_batch_however_late_a_run_gets_its_turn(now: datetime) -> None:
    (first, second), batch = pair(now, text="{{ today }} {{ upstream.first.n }}")
    later = now + timedelta(days=2)

    end(batch, first, "succeeded", later, output={"n": 3})
    prepare(run_id=run_of(batch, second).pk, now=later)

    assert run_of(batch, second).spec["parameters"] == {"text": f"{now.date()} 3"}


def test_a_batch_taken_up_again_uses_the_outputs_of_the_new_runs(now: datetime) -> None:
    (first, second), batch = pair(now, text="{{ today }} {{ upstream.first.n }}")
    end(batch, first, "succeeded", now, output={"n": 1})
    prepare(run_id=run_of(batch, second).pk, now=now)
    end(batch, second, "failed", now)
    later = now + timedelta(days=1)

    # What went well keeps its output.
    batch.refresh_from_db()
    new = again_from_failed(batch=batch, by=SYSTEM, now=later)
    prepare(run_id=run_of(new, second).pk, now=later)
    assert run_of(new, second).spec["parameters"] == {"text": f"{now.date()} 1"}


def test_a_root_that_runs_again_gives_its_new_output(now: datetime) -> None:
    (first, second), batch = pair(now, text="{{ upstream.first.n }}")
    end(batch, first, "failed", now, output={"n": 1})
    batch.refresh_from_db()

    new = again_from_failed(batch=batch, by=SYSTEM, now=now)
    end(new, first, "succeeded", now, output={"n": 2})
    prepare(run_id=run_of(new, second).pk, now=now)

    assert run_of(new, second).spec["parameters"] == {"text": "2"}
