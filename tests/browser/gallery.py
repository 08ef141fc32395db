"""Rows that make every page look lived in, for screenshots."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from apps.accounts.models import User
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.runs.states import ACTIVE, State, Trigger
from apps.spiders.models import Spider
from tests.factories import AdminFactory, JobFactory, NodeFactory, RunFactory, SpiderFactory

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


def furnish(now: datetime) -> tuple[User, Job, Run]:
    """A panel in use: who looks, a job with a past, and its newest run."""
    ada = AdminFactory(username="ada", first_name="Ada", email="ada@example.com")
    node = NodeFactory(name="crawl-1", executor="docker", isolated=True, heartbeat_at=now + timedelta(minutes=10))
    quotes, books, prices, _slow = sample_spiders()
    parameters = {"keywords": ["sea", "winter"], "min_rating": 4, "max_pages": 10, "include_description": True}
    job = JobFactory(spider=books, name="Books of the week", parameters=parameters, memory_mb=512)
    JobFactory(spider=prices, name="Price list, every morning")
    other = JobFactory(spider=quotes, name="Quotes about courage", parameters={"tag": "courage"})
    run = None
    for place, (state, reason, detail, items, errors) in enumerate([*ENDINGS[4:], *ENDINGS[:4]] * 2):
        queued = now - timedelta(minutes=7 * (20 - place) + place * place)
        started = None if state == State.QUEUED else queued + timedelta(seconds=2)
        over = state not in ACTIVE and started is not None
        run = RunFactory(
            job=job if place % 3 else other,
            state=state,
            reason=reason,
            detail=detail,
            trigger=(Trigger.MANUAL, Trigger.API, Trigger.CLI)[place % 3],
            requested_by=ada,
            node=None if state == State.QUEUED else node,
            queued_at=queued,
            started_at=started,
            finished_at=started + timedelta(seconds=11 + 37 * place) if over and started else None,
            items=items,
            errors=errors,
            lines=items * 3,
        )
    assert run is not None
    return ada, job, run
