"""The buttons of runs: one form each, and one for many runs at once."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.actors import person
from apps.core.addresses import where_from
from apps.core.errors import PanelError
from apps.core.schema_forms import UNKNOWN, Render, SchemaForm
from apps.core.templating import each_text
from apps.runs import actions
from apps.runs.forms import read_many
from apps.runs.models import Run
from apps.runs.reruns import rerun_changed
from apps.runs.selectors import listing
from apps.runs.states import Trigger
from apps.runs.views.detail import taken


@login_required
@require_POST
def act(request: HttpRequest, run_id: int, action: str) -> HttpResponse:
    """Stop, kill, pause or resume: back to where the button was."""
    run = taken(request, run_id, actions.RIGHTS[action])
    actions.perform(action, run=run, by=person(request.user), now=timezone.now(), trigger=Trigger.MANUAL)
    return redirect(where_from(request, otherwise=reverse("runs:detail", args=(run_id,))))


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def rerun(request: HttpRequest, run_id: int) -> HttpResponse:
    """A bare POST repeats the order; GET shows its parameters in a form, whose POST says `with_changes`."""
    run = taken(request, run_id, "run")
    if request.method == "POST" and "with_changes" not in request.POST:
        by, now = person(request.user), timezone.now()
        return redirect("runs:detail", actions.perform("rerun", run=run, by=by, now=now, trigger=Trigger.MANUAL).pk)
    form = _form(request, run)
    refused: list[str] = []
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("runs:detail", _again(request, run, form).pk)
        except PanelError as error:
            refused = [error.message]
            for name, sentences in error.fields.items():
                form.errors.setdefault(name.removeprefix("parameters."), []).extend(sentences)
    wrong = bool(refused or form.errors) and not form.was_rearranged
    context = {"run": run, "form": form, "refused": refused, "wrong": wrong}
    return render(request, "runs/rerun.html", context, status=422 if wrong else 200)


def _form(request: HttpRequest, run: Run) -> SchemaForm:
    schema, secrets = run.version.parameter_schema, run.spec.get("secrets") or {}
    samples = _unfilled(run) if run.spec.get("pending") else None
    if request.method == "POST":
        return SchemaForm(schema, data=request.POST, secrets_set=secrets, samples=samples)
    return SchemaForm(schema, initial=run.spec["parameters"], secrets_set=secrets, samples=samples)


def _unfilled(run: Run) -> Render:
    """Templates of a run that were never filled in will be; whatever else is typed is a value."""
    waiting = {text for _place, text in each_text(run.spec["parameters"])}
    return lambda text: UNKNOWN if text in waiting else text


def _again(request: HttpRequest, run: Run, form: SchemaForm) -> Run:
    return rerun_changed(
        run=run,
        by=person(request.user),
        now=timezone.now(),
        trigger=Trigger.MANUAL,
        parameters=form.parameters,
        secrets={**form.secrets, **dict.fromkeys(form.cleared)},
        complete=True,
    )


# What is asked before many runs are changed, and said afterwards.
def _question(action: str, count: int) -> str:
    return {
        "stop": ngettext("Stop %(n)d run?", "Stop %(n)d runs?", count),
        "kill": ngettext("Kill %(n)d run now?", "Kill %(n)d runs now?", count),
        "pause": ngettext("Pause %(n)d run?", "Pause %(n)d runs?", count),
        "resume": ngettext("Resume %(n)d run?", "Resume %(n)d runs?", count),
        "rerun": ngettext("Start %(n)d run again?", "Start %(n)d runs again?", count),
    }[action] % {"n": count}


def _done(action: str, count: int) -> str:
    return {
        "stop": ngettext("%(n)d run was asked to stop.", "%(n)d runs were asked to stop.", count),
        "kill": ngettext("%(n)d run is being killed.", "%(n)d runs are being killed.", count),
        "pause": ngettext("%(n)d run is being paused.", "%(n)d runs are being paused.", count),
        "resume": ngettext("%(n)d run goes on.", "%(n)d runs go on.", count),
        "rerun": ngettext("%(n)d run was queued again.", "%(n)d runs were queued again.", count),
    }[action] % {"n": count}


@login_required
@never_cache
@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Asks first, by a page that names the runs: it needs no script. `confirmed` does it."""
    back = where_from(request, otherwise=reverse("runs:list"))
    action, ids = request.POST.get("action", ""), read_many(request.POST.getlist("ids"))
    if action not in actions.RIGHTS or not ids:
        messages.warning(request, _("Choose some runs first."))
        return redirect(back)
    if "confirmed" in request.POST:
        _all(request, action, ids)
        return redirect(back)
    return render(request, "runs/bulk.html", _choice(request, action, ids) | {"back": back})


def _choice(request: HttpRequest, action: str, ids: list[int]) -> dict[str, Any]:
    """The runs that the action fits, and how many it does not fit or that this person may not change."""
    seen = listing.runs_by_id(request.user, ids)
    permitted = listing.with_right(request.user, actions.RIGHTS[action], seen)
    runs = [run for run in seen if run.pk in permitted and _suits(action, run)]
    return {"action": action, "runs": runs, "left_out": len(ids) - len(runs), "question": _question(action, len(runs))}


def _suits(action: str, run: Run) -> bool:
    """A kill of many takes those too that nobody has asked to stop yet."""
    return actions.fits(action, run) or (action == "kill" and actions.fits("stop", run))


def _all(request: HttpRequest, action: str, ids: list[int]) -> None:
    outcomes = actions.perform_on_all(
        action, user=request.user, ids=ids, by=person(request.user), now=timezone.now(), trigger=Trigger.MANUAL
    )
    done = [outcome for outcome in outcomes if outcome.error is None]
    if done:
        messages.success(request, _done(action, len(done)))
    for outcome in outcomes:
        if outcome.error is not None:
            messages.warning(request, outcome.error.message)
