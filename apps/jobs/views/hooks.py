"""Webhooks of a job: making, renewing and revoking them. Who may schedule the job may do so."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.actors import person
from apps.core.errors import PanelError
from apps.jobs import selectors
from apps.jobs.forms.hook_form import HookForm
from apps.jobs.models import Hook, Job
from apps.jobs.selectors.hooks import hooks_of
from apps.jobs.services import hooks
from apps.jobs.views.hook_examples import call_lines


def _job_to_schedule(request: HttpRequest, pk: int) -> Job:
    return get_object_or_404(selectors.visible_jobs(request.user, "schedule"), pk=pk)


@login_required
@never_cache
@require_safe
def hook_list(request: HttpRequest, pk: int) -> HttpResponse:
    job = _job_to_schedule(request, pk)
    return render(request, "jobs/hooks/list.html", {"job": job, "hooks": list(hooks_of(job))})


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, pk: int) -> HttpResponse:
    """What a POST made is shown in its own answer: nowhere else is there anything that could show it."""
    job = _job_to_schedule(request, pk)
    form = HookForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = hooks.create_hook(job=job, by=person(request.user), now=timezone.now(), **form.values)
        except PanelError as error:
            form.take(error)
        else:
            return _shown(request, job, *made)
    return render(request, "jobs/hooks/form.html", {"job": job, "form": form}, status=422 if form.errors else 200)


@login_required
@never_cache
@require_POST
def renew(request: HttpRequest, pk: int, hook: int) -> HttpResponse:
    job = _job_to_schedule(request, pk)
    own = get_object_or_404(hooks_of(job), pk=hook)
    return _shown(request, job, *hooks.renew_token(hook=own, by=person(request.user), now=timezone.now()))


@login_required
@require_POST
def revoke(request: HttpRequest, pk: int, hook: int) -> HttpResponse:
    job = _job_to_schedule(request, pk)
    own = get_object_or_404(hooks_of(job), pk=hook)
    hooks.revoke_hook(hook=own, by=person(request.user), now=timezone.now())
    messages.success(request, _("Webhook “%(name)s” is revoked: its address is unknown now.") % {"name": own.name})
    return redirect("jobs:hooks", job.pk)


def _shown(request: HttpRequest, job: Job, hook: Hook, token: str, key: str) -> HttpResponse:
    address = request.build_absolute_uri(reverse("hooks:door", args=(token,)))
    context = {"job": job, "hook": hook, "address": address, "key": key}
    return render(request, "jobs/hooks/made.html", {**context, "lines": call_lines(hook, job, address, key)})
