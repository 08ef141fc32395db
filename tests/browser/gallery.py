"""Rows that make every page look lived in, for screenshots."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from apps.accounts.models import User
from apps.jobs.models import Job
from apps.runs.models import Node, Pool, Run, RunEvent
from apps.runs.states import ACTIVE, State, Trigger
from apps.spiders.models import Spider
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import (
    AdminFactory,
    AttemptFactory,
    JobFactory,
    NodeFactory,
    PoolFactory,
    RunFactory,
    SpiderFactory,
)

ROOT = Path(__file__).resolve().parent.parent.parent

ENDINGS: tuple[tuple[State, str, dict[str, object], int, int], ...] = (
    (State.QUEUED, "", {}, 0, 0),
    (State.STARTING, "", {}, 0, 0),
    (State.RUNNING, "", {}, 1480, 2),
    (State.STOPPING, "stopped_by_user", {"by": "ada"}, 310, 0),
    (State.SUCCEEDED, "", {}, 12480, 0),
    (State.FAILED, "exit_nonzero", {"exit_code": 3}, 42, 17),
    (State.FAILED, "oom", {"memory_mb": 512}, 0, 1),
    (State.TIMED_OUT, "run_timeout", {"seconds": 3600}, 5120, 0),
    (State.CANCELED, "stopped_by_user", {"by": "ada"}, 12, 0),
    (State.LOST, "node_lost", {"node": "crawl-2"}, 700, 0),
    (State.SKIPPED, "overlap_skip", {"run": 7}, 0, 0),
)


def sample_spiders() -> list[Spider]:
    """The samples as the registry describes them."""
    registry = json.loads((ROOT / "spider_repo" / "spider_registry.json").read_text(encoding="utf-8"))
    return [
        SpiderFactory(
            name=entry["name"],
            kind=entry["kind"],
            titles=entry["title"],
            descriptions=entry["description"],
            author=entry["author"],
            version__parameter_schema=entry["parameter_schema"],
            version__item_schema=entry["item_schema"],
            version__default_limits=entry["limits"],
        )
        for entry in registry["spiders"]
    ]


def places(now: datetime) -> tuple[Node, Pool]:
    """Nodes in every state but one, and pools in use."""
    alive = now + timedelta(minutes=10)
    node = NodeFactory(
        name="crawl-1",
        executor="docker",
        engine_version="28.5.2",
        isolated=True,
        heartbeat_at=alive,
        labels={"zone": "eu", "browser": "yes"},
    )
    NodeFactory(name="crawl-2", executor="docker", isolated=True, heartbeat_at=now - timedelta(hours=3), slots=8)
    NodeFactory(
        name="crawl-3",
        executor="docker",
        isolated=True,
        heartbeat_at=alive,
        cordoned_at=now,
        drain_until=now + timedelta(minutes=25),
        warnings=["The disk of the spools is 88 % full."],
    )
    PoolFactory(name="books.example", limit=3, description="No more than three at once, they asked for it.")
    return node, PoolFactory(name="shop.example", limit=5)


def eventful(now: datetime, job: Job, node: Node) -> Run:
    """A run with a past: lost with its node, out of memory, and soon to be tried again."""
    begun = now - timedelta(minutes=31)
    run = RunFactory(job=job, state=State.RETRY_WAIT, attempt=2, reason="oom", detail={"memory_mb": 512})
    run.queued_at, run.started_at = begun, begun + timedelta(seconds=3)
    run.retry_at, run.items, run.errors = now + timedelta(minutes=4, seconds=20), 310, 4
    run.save(update_fields=["queued_at", "started_at", "retry_at", "items", "errors"])
    ends = (
        ("node_lost", {"node": "crawl-2"}, None, {"failures": 1, "attempts": 3, "infrastructure": True}, 5),
        ("oom", {"memory_mb": 512}, 137, {"failures": 1, "attempts": 3, "infrastructure": False}, 260),
    )
    at = begun
    _event(run, at, "", State.QUEUED, 0, "ada")
    for number, (reason, detail, code, budget, delay) in enumerate(ends, 1):
        _event(run, at + timedelta(seconds=3), State.QUEUED, State.STARTING, number, "agent: crawl-1")
        _event(run, at + timedelta(seconds=5), State.STARTING, State.RUNNING, number, "agent: crawl-1")
        if number == 2:
            _event(run, at + timedelta(minutes=2), "", "", number, "ada", kind="pause")
            _event(run, at + timedelta(minutes=2, seconds=1), State.RUNNING, State.PAUSED, number, "agent: crawl-1")
            _event(run, at + timedelta(minutes=7), "", "", number, "ada", kind="resume")
            _event(run, at + timedelta(minutes=7, seconds=1), State.PAUSED, State.RUNNING, number, "agent: crawl-1")
            _event(run, at + timedelta(minutes=9), "", "", number, "agent: crawl-1", kind="adopted")
        ended = at + timedelta(minutes=12)
        AttemptFactory(
            run=run,
            number=number,
            node=node,
            executor="docker",
            environment="clawpanel-run:4f2c9a1b7d",
            started_at=at + timedelta(seconds=5),
            finished_at=ended,
            exit_code=code,
            reason=reason,
            detail=detail,
            infrastructure=bool(budget["infrastructure"]),
            lines=2,
            items=155,
        )
        told = {**detail, **budget, "delay_seconds": delay}
        _event(run, ended, State.RUNNING, State.RETRY_WAIT, number, "agent: crawl-1", reason=reason, detail=told)
        at = ended + timedelta(seconds=delay)
        if number == 1:
            _event(run, at, State.RETRY_WAIT, State.QUEUED, number, "system: clawpanel")
    store_rows(run, [row(1, "crawling the first shelf"), row(2, "the machine is getting slow", 30)])
    store_rows(run, [row(3, "crawling the first shelf again"), row(4, "memory is short", 40)], attempt=2)
    store_items(run, [{"title": "The Sea", "price": 12.5}], attempt=1)
    store_items(run, [{"title": "The Sea", "price": 12.5}, {"title": "Winter", "price": 9}], first=2, attempt=2)
    return run


def _event(
    run: Run, at: datetime, frm: str, to: str, attempt: int, actor: str, *, kind: str = "state", **more: Any
) -> None:
    RunEvent.objects.create(
        run=run, at=at, kind=kind, from_state=frm, to_state=to, attempt=attempt, actor=actor, **more
    )


def furnish(now: datetime) -> tuple[User, Job, Run]:
    """A panel in use: who looks, a job with a past, and its newest run."""
    ada = AdminFactory(username="ada", first_name="Ada", email="ada@example.com")
    node, pool = places(now)
    quotes, books, prices, _slow = sample_spiders()
    parameters = {"keywords": ["sea", "winter"], "min_rating": 4, "max_pages": 10, "include_description": True}
    job = JobFactory(spider=books, name="Books of the week", parameters=parameters, memory_mb=512)
    JobFactory(spider=prices, name="Price list, every morning").pools.add(pool)
    other = JobFactory(spider=quotes, name="Quotes about courage", parameters={"tag": "courage"})
    for place, (state, reason, detail, items, errors) in enumerate([*ENDINGS[4:], *ENDINGS[:4]] * 2):
        queued = now - timedelta(minutes=7 * (20 - place) + place * place)
        started = None if state in (State.QUEUED, State.SKIPPED) else queued + timedelta(seconds=2)
        over = state not in ACTIVE
        RunFactory(
            job=job if place % 3 else other,
            state=state,
            reason=reason,
            detail=detail,
            trigger=(Trigger.MANUAL, Trigger.API, Trigger.CLI)[place % 3],
            requested_by=ada,
            node=node if started else None,
            queued_at=queued,
            started_at=started,
            finished_at=(started or queued) + timedelta(seconds=11 + 37 * place if started else 0) if over else None,
            items=items,
            errors=errors,
            lines=items * 3,
        )
    return ada, job, eventful(now, job, node)
