"""Running a job for each row of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.core.actors import person
from apps.core.errors import PanelError
from apps.core.pasted_tables import MOST_BYTES, decoded
from apps.jobs import selectors
from apps.jobs.models import Job
from apps.jobs.services import groups
from apps.runs.models import Batch
from apps.runs.selectors import groups as group_reads

# More are not drawn; what is wrong further below is drawn all the same.
FIRST_ROWS, WRONG_ROWS = 50, 50
RECENT = 10


@dataclass(slots=True)
class InputsForm:
    """What was typed, and what it came to."""

    text: str = ""
    column: str = ""
    name: str = ""
    concurrency: str = str(groups.DEFAULT_CONCURRENCY)
    table: groups.InputTable | None = None
    errors: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def posted(cls, request: HttpRequest) -> InputsForm:
        asked = request.POST
        form = cls(
            text=asked.get("table", ""),
            column=asked.get("column", ""),
            name=asked.get("name", "").strip(),
            concurrency=asked.get("concurrency", "").strip(),
        )
        if (file := request.FILES.get("file")) is not None:
            try:
                form.text = decoded(file.read(MOST_BYTES + 1))
            except PanelError as error:
                form.take(error)
        return form

    def check(self, job: Job, request: HttpRequest) -> None:
        """Read the table, unless there is none yet."""
        if not self.text.strip() or self.errors:
            return
        try:
            self.table = groups.table_of_inputs(
                job=job, text=self.text, column=self.column, by=person(request.user), now=timezone.now()
            )
        except PanelError as error:
            self.take(error)

    def take(self, error: PanelError) -> None:
        for name, sentences in (error.fields or {"table": [error.message]}).items():
            # Of a row that has changed between check and start.
            self.errors.setdefault(name if name in ("concurrency", "name", "column") else "table", []).extend(sentences)

    @property
    def at_once(self) -> int:
        """0 is no number that the service takes."""
        return int(self.concurrency) if self.concurrency.isascii() and self.concurrency.isdigit() else 0

    @property
    def shown_rows(self) -> list[groups.InputRow]:
        if self.table is None:
            return []
        below = [row for row in self.table.rows[FIRST_ROWS:] if row.wrong]
        return [*self.table.rows[:FIRST_ROWS], *below[:WRONG_ROWS]]

    @property
    def left_out(self) -> int:
        return len(self.table.rows) - len(self.shown_rows) if self.table else 0

    @property
    def wrong(self) -> bool:
        return bool(self.errors) or bool(self.table and self.table.faults)

    @property
    def summary(self) -> str:
        if self.table is None:
            return ""
        n = len(self.table.rows)
        if not self.table.faults:
            return ngettext("%(n)d row, and it fits.", "%(n)d rows, and all of them fit.", n) % {"n": n}
        wrong = len(self.table.wrong_rows)
        said = ngettext("%(wrong)d of %(n)d row is wrong.", "%(wrong)d of %(n)d rows are wrong.", n)
        return said % {"n": n, "wrong": wrong}


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def inputs(request: HttpRequest, pk: int) -> HttpResponse:
    """A POST with `start` starts the group; any other one checks what was pasted."""
    job = get_object_or_404(selectors.visible_jobs(request.user, "run"), pk=pk)
    form = InputsForm()
    if request.method == "POST":
        form = InputsForm.posted(request)
        form.check(job, request)
        if "start" in request.POST and (answer := _started(request, job, form)):
            return answer
    started = request.method == "POST" and "start" in request.POST
    if request.headers.get("HX-Request"):
        template = "jobs/_inputs_box.html" if request.FILES else "jobs/_inputs_check.html"
        return render(request, template, _context(job, form))
    return render(request, "jobs/inputs.html", _context(job, form), status=422 if started else 200)


def _started(request: HttpRequest, job: Job, form: InputsForm) -> HttpResponse | None:
    """Where to go, or nothing when it was refused; the form then says why."""
    if form.table is None and not form.errors:
        form.errors["table"] = [_("Paste a table, or choose a file.")]
    if form.table is None or form.wrong:
        return None
    try:
        batch = groups.start_inputs(
            job=job,
            rows=form.table.values,
            by=person(request.user),
            now=timezone.now(),
            concurrency=form.at_once,
            name=form.name,
        )
    except PanelError as error:
        form.take(error)
        return None
    n = len(form.table.rows)
    messages.success(request, ngettext("%(n)d run is started.", "%(n)d runs are started.", n) % {"n": n})
    return redirect("batches:detail", batch.pk)


def _context(job: Job, form: InputsForm) -> dict[str, Any]:
    return {
        "job": job,
        "form": form,
        "columns": _columns(job),
        "earlier": group_reads.glances(job.pk, Batch.Kind.INPUTS, most=RECENT),
        "most": groups.MOST_RUNS,
        "example": "{{ yesterday }}",
    }


def _columns(job: Job) -> list[str]:
    version = selectors.version_of(job)
    return groups.columns_of(job) if version else []
