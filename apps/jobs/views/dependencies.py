"""The page on which a person says which jobs a job follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.core.errors import PanelError
from apps.jobs import selectors
from apps.jobs.models import Condition, Job, Join
from apps.jobs.selectors.graph import Neighbours, neighbours
from apps.jobs.services.graph import MOST_UPSTREAMS, set_dependencies


@dataclass(slots=True)
class Row:
    """A line of the form: the job as it was chosen, "" for none."""

    upstream: str = ""
    condition: str = Condition.SUCCESS.value
    errors: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DependenciesForm:
    rows: list[Row]
    join: str
    errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, job: Job, around: Neighbours) -> DependenciesForm:
        rows = [Row(str(each.id), each.condition) for each in around.upstreams]
        return cls([*rows, Row()], job.join)

    @classmethod
    def posted(cls, data: QueryDict) -> DependenciesForm:
        chosen = zip(data.getlist("upstream"), data.getlist("condition"), strict=False)
        rows = [Row(upstream, condition) for upstream, condition in chosen][: MOST_UPSTREAMS + 1]
        return cls(rows, data.get("join", Join.ALL.value))

    @property
    def filled(self) -> list[Row]:
        return [row for row in self.rows if row.upstream]

    def save(self, job: Job, by: User) -> bool:
        wanted = [(_key(row.upstream), row.condition) for row in self.filled]
        try:
            set_dependencies(job=job, upstreams=wanted, join=self.join, by=by, now=timezone.now())
        except PanelError as error:
            self._take(error)
            return False
        return True

    def _take(self, error: PanelError) -> None:
        filled = self.filled
        for name, said in error.fields.items():
            place = name.removeprefix("upstreams.")
            if place.isdecimal() and int(place) < len(filled):
                filled[int(place)].errors += said
            else:
                self.errors += said
        if not error.fields:
            self.errors.append(error.message)

    @property
    def wrong(self) -> bool:
        return bool(self.errors or any(row.errors for row in self.rows))


def _key(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def dependencies(request: HttpRequest, pk: int) -> HttpResponse:
    """A row left empty is none; `add` gives one more to fill in."""
    job = get_object_or_404(selectors.visible_jobs(request.user, "schedule"), pk=pk)
    around = neighbours(job, request.user)
    if request.method != "POST":
        form = DependenciesForm.of(job, around)
    else:
        form = DependenciesForm.posted(request.POST)
        if "add" in request.POST:
            form.rows.append(Row())
        elif form.save(job, cast(User, request.user)):
            messages.success(request, _("Saved what job “%(name)s” follows.") % {"name": job.name})
            return redirect("jobs:detail", job.pk)
    context = {
        "job": job,
        "form": form,
        "choices": _choices(request, job, around),
        "conditions": Condition.choices,
        "joins": Join.choices,
        "downstreams": around.downstreams,
    }
    return render(request, "jobs/dependencies.html", context, status=422 if form.wrong else 200)


def _choices(request: HttpRequest, job: Job, around: Neighbours) -> Sequence[tuple[str, str]]:
    """Jobs of the project by name; those that were chosen before by somebody who sees more go by their number."""
    seen = selectors.visible_jobs(request.user).filter(project=job.project_id).exclude(pk=job.pk)
    hidden = [(str(each.id), each.name) for each in around.upstreams if not each.visible]
    return [*((str(pk), name) for pk, name in seen.values_list("pk", "name")), *hidden]
