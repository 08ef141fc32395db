"""Making, changing and deleting jobs."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.accounts.rights import actions_on, can
from apps.core.actors import person
from apps.core.errors import PanelError
from apps.core.schema_forms import SchemaForm
from apps.jobs import selectors, services
from apps.jobs.forms import JobForm, ScheduleForm, changed_values, default_values, prefilled
from apps.jobs.forms.zone_fields import zone_names
from apps.jobs.models import Job
from apps.jobs.views.form_page import JobPageForm
from apps.jobs.views.samples import samples_for
from apps.jobs.views.schedule_lines import lines_of_job
from apps.jobs.views.when import MARK, when_form
from apps.runs.states import Trigger
from apps.spiders.models import Spider


def schema_of(spider: Spider) -> dict[str, Any]:
    return spider.current_version.parameter_schema if spider.current_version else {}


def _chosen(spiders: list[Spider], name: str) -> Spider | None:
    """The named spider; one that is not there or not theirs to use is 404."""
    if not name:
        return None
    spider = next((each for each in spiders if each.name == name), None)
    if spider is None:
        raise Http404
    return spider


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    spiders = [each for each in selectors.spiders_for_jobs(request.user) if each.current_version]
    if not spiders:
        raise Http404
    asked = request.POST if request.method == "POST" else request.GET
    spider = _chosen(spiders, asked.get("spider", ""))
    page = None
    if spider and request.method == "POST" and "choose" not in request.POST:
        page = JobPageForm(
            SchemaForm(schema_of(spider), data=request.POST, samples=samples_for(request, spider=spider)),
            JobForm(request.POST, spider=spider, by=cast(User, request.user)),
            _when(request, spider),
        )
        if page.is_valid():
            answer = _saved(request, page, spider=spider)
            if answer:
                return answer
    elif spider:
        page = _fresh(request, spiders, spider)
    context = {**_form_context(request, spider, page), "spiders": spiders}
    return render(request, "jobs/form.html", context, status=422 if page and page.wrong else 200)


def _fresh(request: HttpRequest, spiders: list[Spider], spider: Spider) -> JobPageForm:
    """The form as it opens: with what the address says, or what was typed before another spider was chosen."""
    schema, samples = schema_of(spider), samples_for(request, spider=spider)
    before = next((each for each in spiders if each.name == request.POST.get("shown_spider")), None)
    if request.method == "POST" and before is not None:
        initial = _kept_parameters(request, before, spider)
        return JobPageForm(
            SchemaForm(schema, initial=initial, samples=samples),
            JobForm(
                spider=spider,
                initial=_kept_fields(request.POST, before, spider),
                by=cast(User, request.user),
            ),
            _when(request, spider, keep=request.POST),
        )
    return JobPageForm(
        SchemaForm(schema, initial=prefilled(request.GET, schema), samples=samples),
        JobForm(spider=spider, by=cast(User, request.user)),
        _when(request, spider, keep=QueryDict()),
    )


def _kept_parameters(request: HttpRequest, before: Spider, spider: Spider) -> dict[str, Any]:
    """Values of parameters that both spiders have, unless they are only the other one's defaults."""
    old, new = schema_of(before).get("properties") or {}, schema_of(spider).get("properties") or {}
    typed = SchemaForm(schema_of(before), data=request.POST, samples=samples_for(request, spider=before))
    typed.is_valid()
    return {
        name: value
        for name, value in typed.parameters.items()
        if name in new and value != (old.get(name) or {}).get("default")
    }


def _kept_fields(data: QueryDict, before: Spider, spider: Spider) -> dict[str, Any]:
    """Name and limits the person has changed; the others become the new spider's."""
    changed = changed_values(data, before)
    env = {"env": data["env"]} if data.get("env") else {}
    return {**default_values(spider), **changed, **env}


def _when(request: HttpRequest, spider: Spider, keep: QueryDict | None = None) -> ScheduleForm | None:
    """Who may make jobs of a spider may not always say when they run."""
    return when_form(request, keep=keep) if can(request.user, "schedule", spider) else None


def _form_context(request: HttpRequest, spider: Spider | None, page: JobPageForm | None) -> dict[str, Any]:
    return {
        "spider": spider,
        "page": page,
        "can_run": spider is not None and can(request.user, "run", spider),
        "zones": zone_names(),
    }


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def parameters(request: HttpRequest) -> HttpResponse:
    """What changes in the form when another spider is chosen; by POST, as it carries what was typed."""
    spiders = [each for each in selectors.spiders_for_jobs(request.user) if each.current_version]
    asked = request.POST if request.method == "POST" else request.GET
    spider = _chosen(spiders, asked.get("spider", ""))
    if spider is None:
        raise Http404
    page = _fresh(request, spiders, spider)
    return render(request, "jobs/_form_rest.html", _form_context(request, spider, page))


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(selectors.visible_jobs(request.user, "edit"), pk=pk)
    version = selectors.version_of(job)
    schema = version.parameter_schema if version else {}
    may = actions_on(request.user, job, ("run", "schedule"))
    when = when_form(request, job=job) if "schedule" in may else None
    samples = samples_for(request, spider=job.spider, job=job)
    if request.method == "POST":
        page = JobPageForm(
            SchemaForm(schema, data=request.POST, secrets_set=job.secrets, samples=samples),
            JobForm(request.POST, spider=job.spider, job=job, by=cast(User, request.user)),
            when,
        )
        if page.is_valid():
            answer = _saved(request, page, job=job)
            if answer:
                return answer
    else:
        page = JobPageForm(
            SchemaForm(schema, initial=job.parameters, secrets_set=job.secrets, samples=samples),
            JobForm(spider=job.spider, job=job, by=cast(User, request.user)),
            when,
        )
    context = {**_form_context(request, job.spider, page), "job": job, "can_run": "run" in may}
    if when is None:
        context["lines"] = lines_of_job(request.user, job, timezone.now())
    return render(request, "jobs/form.html", context, status=422 if page.wrong else 200)


def _saved(
    request: HttpRequest, page: JobPageForm, *, spider: Spider | None = None, job: Job | None = None
) -> HttpResponse | None:
    """Where to go after saving, or nothing when it was refused; the form then says why."""
    now, user = timezone.now(), cast(User, request.user)
    try:
        job = page.save(by=user, now=now, spider=spider, job=job)
    except PanelError as error:
        page.take(error)
        return None
    if "run" in request.POST and can(user, "run", job):
        # Two calls on purpose: when the run is refused the job stays saved, and the message says why.
        try:
            run, _new = services.run_job(job=job, by=person(user), now=now, trigger=Trigger.MANUAL)
        except PanelError as error:
            messages.error(request, error.message)
        else:
            return redirect("runs:detail", run.pk)
    if page.when is None and MARK in request.POST:
        messages.warning(request, _("What was said of times was not saved: each schedule has a page of its own now."))
    messages.success(request, _("Job “%(name)s” is saved.") % {"name": job.name})
    return redirect("jobs:detail", job.pk)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks, for browsers without a script; POST does it."""
    job = get_object_or_404(selectors.visible_jobs(request.user, "edit"), pk=pk)
    if request.method != "POST":
        return render(request, "jobs/delete.html", {"job": job})
    name = job.name
    services.delete_job(job=job, by=cast(User, request.user), now=timezone.now())
    messages.success(request, _("Job “%(name)s” is deleted. Its runs are kept.") % {"name": name})
    return redirect("jobs:list")
