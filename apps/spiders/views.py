"""Pages of spiders."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from apps.accounts.rights import actions_on
from apps.spiders import selectors, tables


@login_required
@require_safe
def spider_list(request: HttpRequest) -> HttpResponse:
    spiders = selectors.spiders_at_a_glance(request.user)
    return render(request, "spiders/list.html", {"spiders": spiders})


@login_required
@require_safe
def spider_detail(request: HttpRequest, name: str) -> HttpResponse:
    spider = get_object_or_404(selectors.visible_spiders(request.user), name=name)
    version = spider.current_version
    context = {
        "spider": spider,
        "version": version,
        "parameters": tables.parameter_rows(version.parameter_schema) if version else [],
        "fields": tables.parameter_rows(version.item_schema) if version and version.item_schema else [],
        "versions": selectors.versions(spider)[:20],
        "jobs": selectors.jobs_of(spider),
        "runs": selectors.last_runs_of(spider),
        "may": actions_on(request.user, spider),
    }
    return render(request, "spiders/detail.html", context)
