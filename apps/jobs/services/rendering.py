"""Filling in the templates of an order, once a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.jobs.models import Job
from apps.spiders.models import Version


@dataclass(frozen=True, slots=True)
class Filled:
    """Values as the run gets them. Not `ready`: they are as they were, for some need a call or an upstream run first.

    `templates` are the values before, as RunOrder keeps them; empty when there were no templates.
    """

    parameters: Mapping[str, Any]
    env: Mapping[str, str]
    arguments: tuple[str, ...]
    ready: bool = True
    templates: Mapping[str, Any] = field(default_factory=dict)


def filled_in(
    *,
    job: Job,
    version: Version,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    instant: datetime,
    zone: str,
    now: datetime,
    literal: Collection[str] = (),
) -> Filled:
    """Dates are of the `instant`, in the time zone `zone`. Parameters named `literal` are left as they are, whatever
    they look like: they came from outside, by a webhook."""
    return Filled(parameters=parameters, env=env, arguments=tuple(job.arguments))
