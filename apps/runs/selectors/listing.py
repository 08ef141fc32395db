"""The run list: filtered, sorted and paged by key set; nothing here counts rows."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.apps import apps
from django.contrib.auth.models import AnonymousUser
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils.dateparse import parse_datetime

from apps.accounts import rights
from apps.accounts.models import User
from apps.runs.models import Run
from apps.runs.selectors.runs import visible_runs
from apps.spiders.models import Spider

PAGE_SIZE = 40
MOST_CHOICES = 300
# Large columns the list does not show.
_HEAVY = ("spec", "stats", "output")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs: empty means any."""

    states: Sequence[str] = ()
    job: int | None = None
    spider: str = ""
    trigger: str = ""
    since: datetime | None = None
    search: str = ""
    requested_by: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    rows: list[Run]
    next: str


def wanted_runs(user: User | AnonymousUser, wanted: Wanted) -> QuerySet[Run]:
    """Unordered."""
    runs = visible_runs(user)
    if wanted.states:
        runs = runs.filter(state__in=wanted.states)
    if wanted.job is not None:
        runs = runs.filter(job_id=wanted.job)
    if wanted.spider:
        runs = runs.filter(spider__name=wanted.spider)
    if wanted.trigger:
        runs = runs.filter(trigger=wanted.trigger)
    if wanted.since:
        runs = runs.filter(queued_at__gte=wanted.since)
    if wanted.requested_by is not None:
        runs = runs.filter(requested_by_id=wanted.requested_by)
    if wanted.search:
        runs = runs.filter(_matching(wanted.search))
    return runs


def _matching(text: str) -> Q:
    number = text.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) <= 18:
        return Q(pk=int(number)) | Q(job_name__icontains=text)
    return Q(job_name__icontains=text) | Q(spider__name__icontains=text) | Q(reason__icontains=text)


def run_page(
    user: User | AnonymousUser, wanted: Wanted, *, sort: str, after: str, now: datetime, size: int = PAGE_SIZE
) -> RunPage:
    """One page. `after` is the `next` of the page before; one that cannot be read starts from the top."""
    key, descending = sort.removeprefix("-"), sort.startswith("-")
    cursor = _Cursor.read(after, key)
    as_of = cursor.as_of if cursor else now
    runs = wanted_runs(user, wanted).annotate(sort_value=_KEYS[key].expression(as_of))
    if cursor:
        beyond, tie = ("lt", "lt") if descending else ("gt", "gt")
        runs = runs.filter(
            Q(**{f"sort_value__{beyond}": cursor.value}) | Q(sort_value=cursor.value, **{f"pk__{tie}": cursor.pk})
        )
    order = ("-sort_value", "-pk") if descending else ("sort_value", "pk")
    rows = list(_with_names(runs).order_by(*order)[: size + 1])
    more = len(rows) > size
    rows = rows[:size]
    return RunPage(rows, _Cursor.of(rows[-1], as_of).write(key) if more else "")


def runs_by_id(user: User | AnonymousUser, ids: Sequence[int]) -> list[Run]:
    """Of these the visible ones, newest first."""
    return list(_with_names(visible_runs(user).filter(pk__in=ids)).order_by("-pk"))


def runs_with_ids(ids: Sequence[int]) -> dict[int, Run]:
    """Without a check of rights: of objects whose runs the caller may see."""
    return Run.objects.only("state", "job_id", "queued_at", "started_at", "finished_at", "items").in_bulk(ids)


def newer_than(user: User | AnonymousUser, wanted: Wanted, *, newest: int, most: int = 100) -> int:
    """How many such runs came after run `newest`, counted up to `most`."""
    return len(wanted_runs(user, wanted).filter(pk__gt=newest).values_list("pk")[:most])


def with_right(user: User | AnonymousUser, action: str, runs: Sequence[Run]) -> set[int]:
    """Of these the ids of those on which the user may do `action`."""
    if isinstance(user, User) and user.is_active and user.is_superuser:
        return {run.pk for run in runs}
    ids = [run.pk for run in runs]
    return set(visible_runs(user, action).filter(pk__in=ids).values_list("pk", flat=True))


def spider_choices(user: User | AnonymousUser) -> list[str]:
    names = rights.allowed(user, "view", Spider).order_by("name").values_list("name", flat=True)
    return list(names[:MOST_CHOICES])


def job_choices(user: User | AnonymousUser) -> list[tuple[int, str]]:
    """Jobs lie above runs: they are reached by name only, as the foreign key does."""
    jobs = rights.allowed(user, "view", apps.get_model("jobs", "Job"))
    return list(jobs.order_by("name", "pk").values_list("pk", "name")[:MOST_CHOICES])


def last_runs(runs: QuerySet[Run], count: int) -> list[Run]:
    """The newest, newest first, without their large columns."""
    return list(_with_names(runs).order_by("-pk")[:count])


def _with_names(runs: QuerySet[Run]) -> QuerySet[Run]:
    heavy = (*_HEAVY, "spider__titles", "spider__descriptions")
    return runs.select_related("spider", "node", "requested_by").defer(*heavy)


@dataclass(frozen=True, slots=True)
class _Key:
    expression: Callable[[datetime], Any]
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _moment(text: Any) -> datetime:
    moment = parse_datetime(text)
    if moment is None or moment.tzinfo is None:
        raise ValueError("not an instant")
    return moment


def _duration(as_of: datetime) -> Any:
    took = ExpressionWrapper(Coalesce("finished_at", Value(as_of)) - F("started_at"), DurationField())
    return Coalesce(took, Value(timedelta()), output_field=DurationField())


_KEYS = {
    "id": _Key(lambda _: F("pk"), int, int),
    "items": _Key(lambda _: F("items"), int, int),
    "errors": _Key(lambda _: F("errors"), int, int),
    "started": _Key(lambda _: Coalesce("started_at", "queued_at"), datetime.isoformat, _moment),
    "duration": _Key(_duration, lambda span: span // timedelta(microseconds=1), lambda n: timedelta(microseconds=n)),
}


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Where a page ended. `as_of` keeps the running durations of all pages comparable."""

    value: Any
    pk: int
    as_of: datetime

    @classmethod
    def of(cls, run: Run, as_of: datetime) -> _Cursor:
        return cls(run.sort_value, run.pk, as_of)  # type: ignore[attr-defined]  # annotated above

    def write(self, key: str) -> str:
        parts = [_KEYS[key].write(self.value), self.pk, self.as_of.isoformat()]
        return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, key: str) -> _Cursor | None:
        try:
            value, pk, as_of = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return cls(_KEYS[key].read(value), int(pk), _moment(as_of))
        except (ValueError, TypeError, OverflowError, binascii.Error):
            return None
