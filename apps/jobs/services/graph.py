"""Which jobs follow which, and that none of them leads back to itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.jobs.models import Job


@transaction.atomic
def set_dependencies(*, job: Job, upstreams: Sequence[tuple[int, str]], join: str, by: User, now: datetime) -> None:
    """The job follows exactly these: pairs of the id of the upstream job and the condition.

    Faults are named `upstreams.<place from 0>`, `upstreams` or `join`.
    """
    raise NotImplementedError
