"""Parameters and secrets of a job: checked against the schema of its version, and the secrets kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.actors import Actor
from apps.core.errors import Conflict, Invalid
from apps.core.schema_forms import Render, secret_names, split_secrets, validate, with_values
from apps.core.schema_forms.templates import Result
from apps.jobs.models import Job
from apps.jobs.policies import Faults
from apps.jobs.selectors import version_of
from apps.jobs.services.template_names import known_in_parameters, samples
from apps.runs.models import Run
from apps.spiders.models import Secret, Version
from apps.spiders.secrets import keep, reveal

MAX_SECRET_BYTES = 64 * 1024


class NoVersion(Conflict):
    """There is no code to run."""

    code = "no_version"


def needed_version(job: Job) -> Version:
    version = version_of(job)
    if version is None:
        raise NoVersion(_("Spider %(spider)s has no version yet.") % {"spider": job.spider.name})
    return version


def take_parameters(job: Job, changes: dict[str, Any], *, now: datetime, faults: Faults) -> dict[str, Any]:
    schema = needed_version(job).parameter_schema
    given = changes.get("parameters", job.parameters)
    if not isinstance(given, Mapping):
        faults["parameters"] = [_("Parameters are an object with a value for each name.")]
        return {}
    plain, typed = split_secrets(schema, given)
    typed |= changes.get("secrets") or {}
    stored = {name: pk for name, pk in job.secrets.items() if name not in typed}
    try:
        render = samples(job, known_in_parameters(job), now=now)
        check_parameters(schema, plain, typed=typed, stored=stored, render=render)
    except Invalid as error:
        faults.update(error.fields)
    job.parameters = plain
    return typed


def check_parameters(
    schema: Mapping[str, Any],
    plain: Mapping[str, Any],
    *,
    typed: Mapping[str, Any],
    stored: Mapping[str, int],
    render: Render | None = None,
) -> None:
    """Against the schema, secrets included. Faults are named `parameters.<path>`.

    With `render`, templates are tried by it: what is checked is what they would become. Without it they are texts.
    """
    known = secret_names(schema)
    said = {name: [_("There is no secret parameter of this name.")] for name in typed if name not in known}
    values = {name: value for name, value in typed.items() if value is not None and name not in said}
    said |= {
        name: [_("A secret is a text of at most 64 KiB.")] for name, value in values.items() if not _is_secret(value)
    }
    checked = {name: value for name, value in values.items() if name not in said}
    tried = with_values(schema, plain, render) if render else Result(dict(plain))
    said |= tried.faults
    given = {**tried.parameters, **checked}
    for path, sentences in validate(schema, given, secrets={*stored, *said}, unknown=tried.unknown).items():
        said.setdefault(path, sentences)
    if said:
        fields = {f"parameters.{path}" if path else "parameters": sentences for path, sentences in said.items()}
        raise Invalid(_("The parameters do not fit the spider."), fields=fields)


def _is_secret(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode("utf-8", "replace")) <= MAX_SECRET_BYTES


# -- secrets ------------------------------------------------------------------------------------------------------


def _kept(job: Job, typed: Mapping[str, Any], by: int | None, now: datetime) -> dict[str, int]:
    if not typed:
        return {}
    who = User.objects.filter(pk=by).first() if by else None
    label = f"{job.spider.name}: "
    return {
        name: keep(project=job.project, label=label + name, value=value, by=who, now=now).pk
        for name, value in typed.items()
        if value is not None
    }


def replace_secrets(job: Job, typed: Mapping[str, Any], *, by: User, now: datetime) -> None:
    untouched = {name: pk for name, pk in job.secrets.items() if name not in typed}
    job.secrets = {**untouched, **_kept(job, typed, by.pk, now)}


def kept_for_run(
    job: Job, typed: Mapping[str, Any], *, by: Actor, now: datetime, idempotency_key: str | None
) -> dict[str, int]:
    """Secrets typed for one run. A repeated request with its key must give the same order, so the same rows."""
    typed = {name: value for name, value in typed.items() if value is not None}
    if typed and idempotency_key:
        earlier = Run.objects.filter(project=job.project, job=job, idempotency_key=idempotency_key).first()
        ids = {name: pk for name, pk in (earlier.spec.get("secrets") or {}).items() if name in typed} if earlier else {}
        if ids.keys() == typed.keys() and reveal(ids) == typed:
            return ids
    return _kept(job, typed, by.user_id, now)


def drop_unused(job: Job, before: Mapping[str, int]) -> None:
    """Forget secrets the job has let go, unless a run still needs them (it may be run again)."""
    for name, pk in before.items():
        if job.secrets.get(name) != pk and not Run.objects.filter(job=job, spec__secrets__contains={name: pk}).exists():
            Secret.objects.filter(pk=pk).delete()
