"""Jobs to look at."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.rights import actions_on, can
from apps.core.durations import format_duration
from apps.jobs import selectors
from apps.jobs.selectors import overview
from apps.jobs.selectors.graph import neighbours
from apps.jobs.tables import policy_rows
from apps.jobs.views.schedule_lines import lines_of_job
from apps.runs.models import Run
from apps.runs.views.listing import rows_of
from apps.spiders.tables import value_rows

PAGE_SIZE = 50
BAR_STEP, BAR_HEIGHT, LEAST_BAR, MOST_BARS = 20, 96, 4, 30


@login_required
@require_safe
@never_cache
def job_list(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("q", "").replace("\0", "").strip()[:100]
    spider = request.GET.get("spider", "").replace("\0", "")[:64]
    after = request.GET.get("after", "").replace("\0", "")[:300]
    found = selectors.jobs_at_a_glance(request.user, search=search, spider=spider, after=after, size=PAGE_SIZE + 1)
    jobs = found[:PAGE_SIZE]
    times = overview.times_of([each.job for each in jobs], timezone.now())
    context = {
        "jobs": jobs,
        "rows": [(each, times.get(each.job.pk)) for each in jobs],
        "next": f"{jobs[-1].job.name}~{jobs[-1].job.pk}" if len(found) > PAGE_SIZE else "",
        "paged": bool(after),
        "search": search,
        "spider": spider,
        "may_create": selectors.spiders_for_jobs(request.user).exists(),
    }
    return render(request, "jobs/list.html", context)


@dataclass(frozen=True, slots=True)
class Bar:
    """A run in the chart: its length against the longest one."""

    run: Run
    took: float
    x: int
    y: int
    height: int


def bars_of(runs: list[Run]) -> list[Bar]:
    """Oldest at the left; runs that never started have the least height."""
    now = timezone.now()
    spans = [((run.finished_at or now) - run.started_at).total_seconds() if run.started_at else 0.0 for run in runs]
    longest = max([*spans, 1.0])
    bars = []
    for place, (run, took) in enumerate(zip(reversed(runs), reversed(spans), strict=True)):
        height = max(LEAST_BAR, round(BAR_HEIGHT * took / longest))
        bars.append(Bar(run, took, x=place * BAR_STEP + 2, y=BAR_HEIGHT - height, height=height))
    return bars


@login_required
@require_safe
@never_cache
def job_detail(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(selectors.visible_jobs(request.user).select_related("repair_job"), pk=pk)
    runs = selectors.last_runs(job)
    version = selectors.version_of(job)
    bars = bars_of(runs)
    context = {
        "job": job,
        "may": actions_on(request.user, job, ("run", "edit", "schedule")),
        "lines": lines_of_job(request.user, job, timezone.now()),
        "around": neighbours(job, request.user),
        "bars": bars,
        "longest": max((bar.took for bar in bars), default=0.0),
        "bars_width": max(len(runs), MOST_BARS) * BAR_STEP,
        "rows": rows_of(request.user, runs),
        "newest": max((run.pk for run in runs), default=0),
        "parameters": value_rows(version.parameter_schema if version else {}, job.parameters, job.secrets),
        "policies": policy_rows(
            job, may_see_repair=job.repair_job is not None and can(request.user, "view", job.repair_job)
        ),
        "time_limit": format_duration(job.timeout_seconds),
        "environment": sorted(job.env.items()),
    }
    return render(request, "jobs/detail.html", context)
