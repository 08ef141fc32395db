"""The names that templates of a job may use, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from apps.core.schema_forms import UNKNOWN, secret_names
from apps.core.templating import Known, Moment, TemplateFault, Values, check, day_of, names_in, render, root_of
from apps.jobs.models import Job
from apps.jobs.selectors.upstreams import jobs_before
from apps.jobs.timing.zones import zone_of

NAMES = (
    "today",
    "yesterday",
    "tomorrow",
    "now",
    "scheduled_for",
    "run.id",
    "job.id",
    "job.name",
    "spider.name",
    "project.name",
)
NODE = "node.name"
# What is known only after somebody was asked, or another run has ended.
OUTSIDE = ("upstream", "call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """All that is put in by name: of one run, or as a sample."""

    instant: datetime
    zone: str
    now: datetime
    run_id: int | None
    job_id: int | None
    job_name: str
    spider: str
    project: str
    upstream: Mapping[str, Any] = field(default_factory=dict)
    calls: Mapping[str, Any] = field(default_factory=dict)

    def values(self, parameters: Mapping[str, Any] | None = None) -> Values:
        zone = zone_of(self.zone)
        local = self.instant.astimezone(zone)
        names = {
            "today": day_of(local),
            "yesterday": day_of(local, -1),
            "tomorrow": day_of(local, 1),
            "now": Moment(self.now.astimezone(zone)),
            "scheduled_for": Moment(local),
            "run.id": self.run_id,
            "job.id": self.job_id,
            "job.name": self.job_name,
            "spider.name": self.spider,
            "project.name": self.project,
        }
        roots = {"upstream": self.upstream, "call": self.calls}
        return Values(names, roots if parameters is None else {**roots, "params": parameters}, zone)


def known_in_parameters(job: Job) -> Known:
    """For values of parameters."""
    elsewhere = {
        NODE: _("The name of the node is not known yet: node.name is for command arguments and environment variables."),
        "params": _("A parameter cannot name another: params.… is for command arguments and environment variables."),
    }
    return Known(NAMES, _outside(job), elsewhere)


def known_in_command(job: Job, schema: Mapping[str, Any]) -> Known:
    """For command arguments and environment variables."""
    names = schema.get("properties", {}).keys() - secret_names(schema)
    return Known((*NAMES, NODE), {**_outside(job), "params": sorted(names)})


def known_in_calls(job: Job) -> Known:
    """For calls: they are made before anything is filled in."""
    sentence = _("A call cannot use “%(name)s”: it is made before parameters are filled in.")
    elsewhere = {name: sentence % {"name": name} for name in ("params", "call", NODE)}
    return Known(NAMES, {"upstream": _Upstreams(job)}, elsewhere)


def _outside(job: Job) -> dict[str, Collection[str]]:
    calls = sorted(job.calls) if isinstance(job.calls, dict) else []
    return {"upstream": _Upstreams(job), "call": calls}


class _Upstreams(Collection[str]):
    """Names and ids of the jobs before a job; looked up only when a template names one."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @cached_property
    def _found(self) -> list[str]:
        found = jobs_before(self._job.pk)
        return [*found.values(), *map(str, found)]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


# -- trying -----------------------------------------------------------------------------------------------------------


def samples(job: Job, known: Known, *, now: datetime) -> Callable[[str], Any]:
    """What a text becomes, with samples for names; UNKNOWN where only the run will tell. Raises TemplateFault."""
    values = sample_names(job, now=now).values()

    def tried(text: str) -> Any:
        if said := check(text, known):
            raise TemplateFault(" ".join(said))
        if is_open(text):
            return UNKNOWN
        return render(text, values)

    return tried


def is_open(text: str) -> bool:
    """Whether its value depends on more than the moment and the job."""
    return any(root_of(name) in (*OUTSIDE, "params", "node") for name in names_in(text))


def sample_names(job: Job, *, now: datetime, instant: datetime | None = None, zone: str = "UTC") -> Names:
    return Names(
        instant=instant or now,
        zone=zone,
        now=now,
        run_id=1,
        job_id=job.pk or 1,
        job_name=job.name,
        spider=job.spider.name,
        project=job.project.name,
    )
