"""Jobs in the admin: the same form and the same services as on the pages."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.admin import AnchorAdmin, key_of
from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.core.actors import person
from apps.core.errors import PanelError
from apps.core.schema_forms import SchemaForm
from apps.jobs import selectors, services
from apps.jobs.forms import JobForm
from apps.jobs.models import Job
from apps.jobs.views.form_page import JobPageForm
from apps.jobs.views.samples import samples_for
from apps.runs import reasons
from apps.runs.states import State, Trigger
from apps.spiders.models import Spider


@admin.register(Job)
class JobAdmin(AnchorAdmin):
    change_right = "edit"
    delete_right = "edit"
    list_display = ("name", "spider", "project", "version", "memory_mb", "timeout_seconds", "priority", "updated_at")
    list_select_related = ("spider", "project", "version")
    search_fields = ("name", "spider__name")
    ordering = ("name", "pk")
    actions = ("run_now",)

    def view_on_site(self, job: Job) -> str:
        return reverse("jobs:detail", args=(job.pk,))

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return bool(request.user.is_staff) and selectors.spiders_for_jobs(request.user).exists()

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        spiders = [each for each in selectors.spiders_for_jobs(request.user) if each.current_version]
        name = request.POST.get("spider") or request.GET.get("spider", "")
        spider = next((each for each in spiders if each.name == name), None)
        return self._form_page(request, spider=spider, spiders=spiders)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        job = get_object_or_404(selectors.visible_jobs(request.user), pk=key_of(object_id))
        if not self.has_change_permission(request, job):
            raise PermissionDenied
        return self._form_page(request, spider=job.spider, job=job)

    def _form_page(
        self,
        request: HttpRequest,
        *,
        spider: Spider | None,
        job: Job | None = None,
        spiders: list[Spider] | None = None,
    ) -> HttpResponse:
        page = self._page(request, spider, job) if spider else None
        if page and request.method == "POST" and page.is_valid():
            saved = self._saved(request, page, spider, job)
            if saved is not None:
                message = _("Job “%(name)s” is saved.") % {"name": saved.name}
                self.message_user(request, message, messages.SUCCESS)
                return HttpResponseRedirect(reverse("admin:jobs_job_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": _("Change job") if job else _("Add job"),
            "original": job,
            "object_id": job.pk if job else None,
            "spider": spider,
            "spiders": spiders,
            "page": page,
            "permissions_url": reverse("admin:jobs_job_permissions", args=(job.pk,)) if job else "",
            "delete_url": reverse("admin:jobs_job_delete", args=(job.pk,)) if job else "",
        }
        request.current_app = self.admin_site.name  # as the admin's own views do
        return render(request, "admin/jobs/job/form.html", context, status=422 if page and page.wrong else 200)

    def _page(self, request: HttpRequest, spider: Spider, job: Job | None) -> JobPageForm:
        version = selectors.version_of(job) if job else spider.current_version
        schema = version.parameter_schema if version else {}
        secrets = tuple(job.secrets) if job else ()
        samples = samples_for(request, spider=spider, job=job)
        if request.method == "POST":
            return JobPageForm(
                SchemaForm(schema, data=request.POST, secrets_set=secrets, samples=samples),
                JobForm(request.POST, spider=spider, job=job, by=cast(User, request.user)),
            )
        initial = job.parameters if job else None
        return JobPageForm(
            SchemaForm(schema, initial=initial, secrets_set=secrets, samples=samples),
            JobForm(spider=spider, job=job, by=cast(User, request.user)),
        )

    def _saved(self, request: HttpRequest, page: JobPageForm, spider: Spider | None, job: Job | None) -> Job | None:
        try:
            return page.save(by=cast(User, request.user), now=timezone.now(), spider=spider, job=job)
        except PanelError as error:
            page.take(error)
            return None

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Who may delete a job may delete what hangs on it: its schedules, their ledger and its webhooks."""
        shown, counts, _missing, protected = super().get_deleted_objects(objs, request)
        return shown, counts, set(), protected

    def delete_model(self, request: HttpRequest, obj: Job) -> None:
        services.delete_job(job=obj, by=cast(User, request.user), now=timezone.now())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for job in queryset.order_by("pk"):
            self.delete_model(request, job)

    @admin.action(description=gettext_lazy("Run now"))
    def run_now(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        permitted = set(allowed(request.user, "run", Job).filter(pk__in=jobs).values_list("pk", flat=True))
        for job in selectors.visible_jobs(request.user).filter(pk__in=jobs.values("pk")):
            if job.pk not in permitted:
                message = _("You may not run job %(job)s.") % {"job": job}
                self.message_user(request, message, messages.ERROR)
                continue
            try:
                run, _new = services.run_job(
                    job=job, by=person(request.user), now=timezone.now(), trigger=Trigger.MANUAL
                )
            except PanelError as error:
                self.message_user(request, f"{job}: {error.message}", messages.ERROR)
                continue
            if run.state == State.SKIPPED:
                self.message_user(request, f"{job}: {reasons.sentence(run)}", messages.WARNING)
            else:
                message = _("Run %(id)s of job %(job)s is queued.") % {"id": run.pk, "job": job.name}
                self.message_user(request, message, messages.SUCCESS)
