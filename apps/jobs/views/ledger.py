"""What became of each due time of a job, and why one did not fire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.jobs import reasons, selectors
from apps.jobs.models import Firing, Job, Outcome
from apps.jobs.selectors.answers import Answer
from apps.jobs.selectors.ledger import LedgerPage
from apps.jobs.views.schedule_lines import words_of

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class LedgerRow:
    firing: Firing
    outcome: str
    sentence: str
    name: str


def ledger_rows(firings: list[Firing]) -> list[LedgerRow]:
    names = {str(value): str(label) for value, label in Outcome.choices}
    words: dict[int, str] = {}
    rows = []
    for firing in firings:
        schedule = firing.schedule
        if schedule is not None and schedule.pk not in words:
            words[schedule.pk] = schedule.name or words_of(schedule)
        rows.append(
            LedgerRow(
                firing=firing,
                outcome=names[firing.outcome],
                sentence=reasons.sentence(firing),
                name=words[schedule.pk] if schedule else _("a schedule that is deleted"),
            )
        )
    return rows


def _moment(text: str) -> datetime | None:
    """A time on the reader's clock, or a day's beginning; nothing for what cannot be read."""
    text = text.strip()[:40]
    try:
        found = parse_datetime(text)
        if found is None and (day := parse_date(text)):
            found = datetime(day.year, day.month, day.day)  # noqa: DTZ001 (made aware below)
    except ValueError:
        return None
    if found is None or not 1971 <= found.year <= 9990:
        return None
    return found if found.tzinfo else timezone.make_aware(found)


@login_required
@require_safe
@never_cache
def ledger(request: HttpRequest, pk: int) -> HttpResponse:
    """All of its state is in the address. `?at=` asks why the job did not run at that time."""
    job = get_object_or_404(selectors.visible_jobs(request.user), pk=pk)
    asked = {name: request.GET.get(name, "").replace("\0", "") for name in ("outcome", "schedule", "from", "to", "at")}
    since, until = _moment(asked["from"]), _moment(asked["to"])
    outcome = asked["outcome"] if asked["outcome"] in Outcome.values else ""
    schedules = list(selectors.schedules_of(job))
    chosen = next((each.pk for each in schedules if str(each.pk) == asked["schedule"]), None)
    after = request.GET.get("after", "").replace("\0", "")[:100]
    page = _page(job, after, since=since, until=until, outcome=outcome, schedule_id=chosen, limit=PAGE_SIZE)
    context = {
        "job": job,
        "rows": ledger_rows(page.rows),
        "next": page.following,
        "paged": bool(after),
        "outcomes": Outcome.choices,
        "outcome": outcome,
        "schedules": [(each.pk, each.name or words_of(each)) for each in schedules],
        "chosen": chosen,
        "since": _shown(since),
        "until": _shown(until),
        "filtered": bool(outcome or chosen or since or until),
        **_answered(job, asked["at"]),
    }
    return render(request, "jobs/ledger.html", context)


def _page(job: Job, after: str, **wanted: Any) -> LedgerPage:
    """A cursor that cannot be read starts from the top."""
    try:
        return selectors.ledger(job, after=after, **wanted)
    except ValueError:
        return selectors.ledger(job, **wanted)


def _shown(moment: datetime | None) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M") if moment else ""


def _answered(job: Job, text: str) -> dict[str, Any]:
    if not text:
        return {}
    moment = _moment(text)
    if moment is None:
        return {"at": text, "wrong_at": _("Enter a date and a time.")}
    found: list[Answer] = selectors.answers_for(job, moment, now=timezone.now())
    lines = [(words_of(each.schedule) if each.schedule else "", each) for each in found]
    return {"at": _shown(moment), "asked_at": moment, "answers": lines}
