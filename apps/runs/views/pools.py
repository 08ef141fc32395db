"""Pools: limits that jobs share. Everybody sees them, who may change them does so here."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.rights import may_change
from apps.core.actors import person
from apps.core.errors import PanelError
from apps.runs import places, selectors
from apps.runs.forms import PoolForm
from apps.runs.models import Pool


@login_required
@require_safe
@never_cache
def pool_list(request: HttpRequest) -> HttpResponse:
    context = {
        "pools": selectors.pools_at_a_glance(),
        **{f"may_{how}": may_change(request.user, Pool, how) for how in ("add", "change", "delete")},
    }
    return render(request, "pools/list.html", context)


def _pool_to(request: HttpRequest, how: str, pk: int) -> Pool:
    if not may_change(request.user, Pool, how):
        raise Http404
    return get_object_or_404(Pool, pk=pk)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    if not may_change(request.user, Pool, "add"):
        raise Http404
    return _edited(request, None)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    return _edited(request, _pool_to(request, "change", pk))


def _edited(request: HttpRequest, pool: Pool | None) -> HttpResponse:
    initial = None if pool is None else {"name": pool.name, "limit": pool.limit, "description": pool.description}
    form = PoolForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        by, now = person(request.user), timezone.now()
        try:
            if pool is None:
                saved = places.create_pool(by=by, now=now, **form.cleaned_data)
            else:
                saved = places.update_pool(pool=pool, by=by, now=now, **form.cleaned_data)
        except PanelError as error:
            form.take(error)
        else:
            messages.success(request, _("Pool “%(name)s” is saved.") % {"name": saved.name})
            return redirect("pools:list")
    context = {"form": form, "pool": pool}
    return render(request, "pools/form.html", context, status=422 if form.errors else 200)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows what hangs on it; a POST without `detach` is refused while jobs use it."""
    pool = _pool_to(request, "delete", pk)
    if request.method == "POST":
        name = pool.name
        detach = "detach" in request.POST
        places.delete_pool(pool=pool, by=person(request.user), now=timezone.now(), detach=detach)
        messages.success(request, _("Pool “%(name)s” is deleted.") % {"name": name})
        return redirect("pools:list")
    jobs, others = selectors.jobs_in(request.user, pool)
    return render(request, "pools/delete.html", {"pool": pool, "jobs": jobs, "others": others})
