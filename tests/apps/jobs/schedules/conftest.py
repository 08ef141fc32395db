"""A job whose times are set, and who sets them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.actors import Actor, person
from apps.jobs.models import Job, Schedule
from apps.jobs.services.schedules import create_schedule
from tests.factories import JobFactory, SpiderFactory, UserFactory

SCHEMA = {
    "type": "object",
    "required": ["site"],
    "properties": {
        "site": {"type": "string"},
        "pages": {"type": "integer", "minimum": 1, "default": 3},
        "token": {"type": "string", "writeOnly": True},
    },
}

Make = Callable[..., Schedule]


@pytest.fixture
def user() -> User:
    return UserFactory()


@pytest.fixture
def by(user: User) -> Actor:
    return person(user)


@pytest.fixture
def job() -> Job:
    return JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA), parameters={"site": "a.example"})


@pytest.fixture
def make(job: Job, by: Actor, now: datetime) -> Make:
    """A schedule of the job; each day at three when nothing else is said."""

    def made(**values: Any) -> Schedule:
        if values.get("type", "cron") == "cron":
            values = {"cron": "0 3 * * *", **values}
        return create_schedule(**{"job": job, "by": by, "now": now, "type": "cron", **values})

    return made
