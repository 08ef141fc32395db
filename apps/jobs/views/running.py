"""Asking for a run of a job: at once, or with other parameters this time."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.core.actors import person
from apps.core.errors import PanelError
from apps.core.schema_forms import SchemaForm
from apps.jobs import selectors, services
from apps.jobs.forms import prefilled
from apps.jobs.views.form_page import JobPageForm
from apps.jobs.views.samples import samples_for
from apps.runs.states import Trigger


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """A bare POST runs the job as it is; GET shows a form whose POST says `with_changes`."""
    job = get_object_or_404(selectors.visible_jobs(request.user, "run"), pk=pk)
    version = selectors.version_of(job)
    schema = version.parameter_schema if version else {}
    samples = samples_for(request, spider=job.spider, job=job)
    if request.method == "POST" and "with_changes" not in request.POST:
        started, _new = services.run_job(job=job, by=person(request.user), now=timezone.now(), trigger=Trigger.MANUAL)
        return redirect("runs:detail", started.pk)
    if request.method == "POST":
        page = JobPageForm(SchemaForm(schema, data=request.POST, secrets_set=job.secrets, samples=samples))
        if page.is_valid():
            try:
                started, _new = services.run_job(
                    job=job,
                    by=person(request.user),
                    now=timezone.now(),
                    trigger=Trigger.MANUAL,
                    parameters=page.parameters.parameters,
                    secrets=page.secrets,
                    complete=True,
                )
            except PanelError as error:
                page.take(error)
            else:
                return redirect("runs:detail", started.pk)
    else:
        initial = {**job.parameters, **prefilled(request.GET, schema)}
        page = JobPageForm(SchemaForm(schema, initial=initial, secrets_set=job.secrets, samples=samples))
    return render(request, "jobs/run.html", {"job": job, "page": page}, status=422 if page.wrong else 200)
