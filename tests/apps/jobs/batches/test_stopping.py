"""The end of a whole batch."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.contrib.admin.models import LogEntry

from apps.core.actors import SYSTEM, person
from apps.jobs.services.batches import BatchFinished, settle, stop_batch, stopping
from apps.runs import reasons
from apps.runs.models import Batch
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of, start, states
from tests.factories import AdminFactory, RunFactory

pytestmark = pytest.mark.django_db


def test_what_waits_is_canceled_and_what_is_under_way_is_stopped(now: datetime) -> None:
    a, b, c, always = jobs_of("a", "b", "c", "always")
    after(b, a)
    after(c, a)
    after(always, b, c, condition="always")
    batch = start(a, now)
    end(batch, a, "succeeded", now)
    end(batch, b, "paused", now)
    admin = AdminFactory(username="ada")

    stop_batch(batch=batch, by=person(admin), now=now)

    assert states(batch) == {"a": "succeeded", "b": "stopping", "c": "canceled", "always": "canceled"}
    assert reasons.sentence(run_of(batch, c)) == f"Stopped by ada, with all of batch {batch.pk}."
    assert LogEntry.objects.get(user=admin).change_message == "stopped"
    assert batch.canceled_at == now
    settle(batch_id=batch.pk, now=now)
    assert Batch.objects.get().finished_at is None


def test_nothing_goes_any_more_and_the_batch_closes(now: datetime) -> None:
    a, b, always = jobs_of("a", "b", "always")
    after(b, a)
    after(always, a, condition="always")
    batch = start(a, now)

    stop_batch(batch=batch, by=SYSTEM, now=now)
    settle(batch_id=batch.pk, now=now)

    assert set(states(batch).values()) == {"canceled"}
    batch.refresh_from_db()
    assert batch.finished_at == now


def test_a_second_stop_changes_nothing_and_one_of_a_finished_batch_is_refused(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    after(b, a)
    batch = start(a, now)
    stop_batch(batch=batch, by=person(AdminFactory(username="first")), now=now)
    stop_batch(batch=batch, by=person(AdminFactory(username="second")), now=now)
    assert batch.graph["canceled_by"] == "first"

    settle(batch_id=batch.pk, now=now)

    with pytest.raises(BatchFinished):
        stop_batch(batch=batch, by=SYSTEM, now=now)


def test_what_the_button_leaves_a_worker_stops(now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "AT_ONCE", 2)
    batch = Batch.objects.create(
        project=RunFactory().project, kind="inputs", trigger="inputs", actor="x", created_at=now, concurrency=1
    )
    runs = [RunFactory(batch=batch, batch_key=f"{n}", state="waiting", apart=True) for n in range(5)]

    stop_batch(batch=batch, by=person(AdminFactory(username="ada")), now=now)
    assert sorted(batch.runs.values_list("state", flat=True)) == ["canceled"] * 2 + ["waiting"] * 3
    settle(batch_id=batch.pk, now=now)

    assert set(batch.runs.values_list("state", flat=True)) == {"canceled"}
    runs[0].refresh_from_db()
    assert runs[0].detail["by"] == "ada"
