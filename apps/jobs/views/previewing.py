"""What parameters with templates would become, beside the form where they are typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.core.errors import PanelError
from apps.core.schema_forms import SchemaForm, names_in_order, secret_names
from apps.core.schema_forms.texts import shown, title_of
from apps.jobs import selectors
from apps.jobs.forms.command_fields import ArgumentsField
from apps.jobs.models import Job
from apps.jobs.services.rendering import Preview, preview
from apps.jobs.views.samples import draft_of, samples_for
from apps.spiders.models import Spider, Version


@dataclass(frozen=True, slots=True)
class Line:
    """What was typed, and its value or what is wrong with it. Neither: only the run will know."""

    label: str
    typed: str
    value: str = ""
    said: str = ""


@login_required
@require_POST
@never_cache
def preview_parameters(request: HttpRequest) -> HttpResponse:
    """Of the form as it stands: nothing is stored, no call is made."""
    spider, job = _subject(request)
    version = selectors.version_of(job) if job else spider.current_version
    if version is None:
        raise Http404
    zone = request.POST.get("when-timezone") or "UTC"
    lines = _lines(request, version, spider, job, zone)
    return render(request, "jobs/_parameter_preview.html", {"lines": lines, "zone": zone})


def _subject(request: HttpRequest) -> tuple[Spider, Job | None]:
    number = request.GET.get("job", "")
    if number:
        key = int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else 0
        job = get_object_or_404(selectors.visible_jobs(request.user), pk=key)
        return job.spider, job
    found = selectors.spiders_for_jobs(request.user).filter(name=request.GET.get("spider", "").replace("\0", ""))
    return get_object_or_404(found), None


def _lines(request: HttpRequest, version: Version, spider: Spider, job: Job | None, zone: str) -> list[Line]:
    samples = samples_for(request, spider=spider, job=job)
    form = SchemaForm(version.parameter_schema, data=request.POST, samples=samples)
    form.is_valid()
    now = timezone.now()
    draft = draft_of(request, spider=spider, job=job)
    try:
        found = preview(
            job=draft,
            version=version,
            parameters=form.typed,
            arguments=_arguments(request),
            instant=now,
            zone=zone,
            now=now,
        )
    except PanelError:
        # A time zone that is wrong is told at its own box.
        return []
    schema = version.parameter_schema
    titles = {name: title_of(schema["properties"][name], name) for name in names_in_order(schema)}
    hidden = secret_names(schema)
    return [
        _line(place, text, found, titles)
        for place, text in found.templates.items()
        if place.split(".")[1] not in hidden
    ]


def _arguments(request: HttpRequest) -> list[str]:
    try:
        return list(ArgumentsField().clean(request.POST.get("arguments", "")))
    except ValueError:
        return []


def _line(place: str, typed: str, found: Preview, titles: dict[str, str]) -> Line:
    part, name, *below = place.split(".")
    label = titles.get(name, name) if part == "parameters" else _("Command")
    label = ".".join([label, *below])
    said = next((sentences[0] for path, sentences in found.faults.items() if path == place), "")
    if said:
        return Line(label, typed, said=said)
    if place in found.open:
        return Line(label, typed)
    value: Any = found.parameters if part == "parameters" else found.command
    for key in (name, *below):
        value = value[int(key)] if isinstance(value, list | tuple) else value[key]
    return Line(label, typed, value=shown(value))
