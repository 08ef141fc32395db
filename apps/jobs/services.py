"""Writing jobs and asking for their runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.actors import Actor
from apps.core.environment import check_environment
from apps.core.errors import Conflict, Invalid, NotFound
from apps.core.schema_forms import secret_names, split_secrets, validate, with_defaults
from apps.jobs.models import Job
from apps.jobs.selectors import version_of
from apps.runs.models import Run
from apps.runs.services import RunOrder, request_run
from apps.runs.states import Trigger
from apps.spiders.models import Secret, Spider, Version
from apps.spiders.secrets import keep, reveal

LIMITS = ("memory_mb", "cpus", "timeout_seconds", "grace_seconds", "priority")
_CHANGEABLE = frozenset({"name", "parameters", "secrets", "version", "env", *LIMITS})
MAX_SECRET_BYTES = 64 * 1024


class JobNameTaken(Conflict):
    code = "job_name_taken"


class NoVersion(Conflict):
    """There is no code to run."""

    code = "no_version"


@transaction.atomic
def create_job(
    *,
    by: User,
    now: datetime,
    spider: Spider,
    name: str,
    parameters: Mapping[str, Any],
    secrets: Mapping[str, str | None] | None = None,
    version: Version | None = None,
    memory_mb: int | None = None,
    cpus: float | None = None,
    timeout_seconds: int | None = None,
    grace_seconds: int | None = None,
    priority: int | None = None,
    env: Mapping[str, str] | None = None,
) -> Job:
    """Limits that are None come from the version, else from the model. Secrets may also stand in the parameters."""
    job = Job(project=spider.project, spider=spider, version=version, created_by=by, created_at=now, updated_at=now)
    for limit, value in _default_limits(version_of(job)).items():
        setattr(job, limit, value)
    given = {
        "memory_mb": memory_mb,
        "cpus": cpus,
        "timeout_seconds": timeout_seconds,
        "grace_seconds": grace_seconds,
        "priority": priority,
    }
    changes = {limit: value for limit, value in given.items() if value is not None}
    _write(
        job, by, now, {"name": name, "parameters": parameters, "secrets": secrets or {}, "env": env or {}, **changes}
    )
    return job


@transaction.atomic
def update_job(*, job: Job, by: User, now: datetime, **changes: Any) -> Job:
    """Change any of what `create_job` takes, except the spider. A secret of None is dropped, unnamed ones stay."""
    unknown = changes.keys() - _CHANGEABLE
    if unknown:
        raise TypeError(f"not a field of a job that can be changed: {', '.join(sorted(unknown))}")
    locked = _locked(job)
    before = dict(locked.secrets)
    locked.updated_at = now
    _write(locked, by, now, changes)
    _drop_unused(locked, before)
    return locked


@transaction.atomic
def delete_job(*, job: Job, by: User, now: datetime) -> None:
    """Its runs stay: all they need is in them."""
    locked = _locked(job)
    before, locked.secrets = dict(locked.secrets), {}
    _drop_unused(locked, before)
    locked.delete()


@transaction.atomic
def run_job(
    *,
    job: Job,
    by: Actor,
    now: datetime,
    trigger: str,
    parameters: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str | None] | None = None,
    idempotency_key: str | None = None,
    complete: bool = False,
) -> tuple[Run, bool]:
    """A run with the job's parameters, `parameters` laid over them, or in their place where they are `complete`.

    The flag says whether the run is new.
    """
    locked = _locked(job)
    version = _version(locked)
    schema = version.parameter_schema
    plain, typed = split_secrets(schema, parameters or {})
    typed |= secrets or {}
    # A job may be older than the version: what the schema does not know any more stays out of the run.
    known = () if complete else schema.get("properties", {}).keys()
    ours = {name: value for name, value in locked.parameters.items() if name in known}
    whole = {**ours, **plain}
    stored = {name: pk for name, pk in locked.secrets.items() if name in secret_names(schema) and name not in typed}
    _check(schema, whole, typed, stored)
    ids = {**stored, **_kept_for_run(locked, typed, by, now, idempotency_key)}
    order = RunOrder(
        version=version,
        trigger=Trigger(trigger),
        project=locked.project,
        job_id=locked.pk,
        job_name=locked.name,
        parameters=with_defaults(schema, whole),
        secrets=ids,
        env=locked.env,
        memory_mb=locked.memory_mb,
        cpus=locked.cpus,
        timeout_seconds=locked.timeout_seconds,
        grace_seconds=locked.grace_seconds,
        priority=locked.priority,
    )
    return request_run(order=order, by=by, now=now, idempotency_key=idempotency_key)


def _locked(job: Job) -> Job:
    """The job as it is now. The lock keeps its secrets from being dropped while a run takes them over."""
    rows = Job.objects.select_for_update(of=("self",))
    found = rows.select_related("project", "spider__current_version", "version").filter(pk=job.pk).first()
    if found is None:
        raise NotFound(_("This job has been deleted."))
    return found


def _version(job: Job) -> Version:
    version = version_of(job)
    if version is None:
        raise NoVersion(_("Spider %(spider)s has no version yet.") % {"spider": job.spider.name})
    return version


def _default_limits(version: Version | None) -> dict[str, Any]:
    limits = version.default_limits if version else {}
    return {name: limits[name] for name in LIMITS if name in limits}


def _write(job: Job, by: User, now: datetime, changes: dict[str, Any]) -> None:
    """Check everything, so that a person sees all faults at once; then save."""
    faults: dict[str, list[str]] = {}
    if "version" in changes:
        job.version = changes["version"]
    if job.version is not None and job.version.spider_id != job.spider_id:
        faults["version"] = [_("This version belongs to another spider.")]
    if "name" in changes:
        job.name = _checked_name(changes["name"], faults)
    for limit in LIMITS:
        if limit in changes:
            setattr(job, limit, _checked_limit(limit, changes[limit], faults))
    if "env" in changes:
        for name, said in check_environment(changes["env"]).items():
            faults.setdefault("env", []).extend(f"{name}: {text}" if name else text for text in said)
        job.env = changes["env"]
    typed: dict[str, Any] = {}
    if not faults.get("version") and changes.keys() & {"parameters", "secrets", "version"}:
        typed = _take_parameters(job, changes, faults)
    if faults:
        raise Invalid(_("Some of this cannot be taken."), fields=faults)
    _replace_secrets(job, typed, by, now)
    _save(job)


def _take_parameters(job: Job, changes: dict[str, Any], faults: dict[str, list[str]]) -> dict[str, Any]:
    schema = _version(job).parameter_schema
    given = changes.get("parameters", job.parameters)
    if not isinstance(given, Mapping):
        faults["parameters"] = [_("Parameters are an object with a value for each name.")]
        return {}
    plain, typed = split_secrets(schema, given)
    typed |= changes.get("secrets") or {}
    stored = {name: pk for name, pk in job.secrets.items() if name not in typed}
    try:
        _check(schema, plain, typed, stored)
    except Invalid as error:
        faults.update(error.fields)
    job.parameters = plain
    return typed


def _check(
    schema: Mapping[str, Any], plain: Mapping[str, Any], typed: Mapping[str, Any], stored: Mapping[str, int]
) -> None:
    """Against the schema, secrets included. Faults are named `parameters.<path>`."""
    known = secret_names(schema)
    said = {name: [_("There is no secret parameter of this name.")] for name in typed if name not in known}
    values = {name: value for name, value in typed.items() if value is not None and name not in said}
    said |= {
        name: [_("A secret is a text of at most 64 KiB.")] for name, value in values.items() if not _is_secret(value)
    }
    checked = {name: value for name, value in values.items() if name not in said}
    for path, sentences in validate(schema, {**plain, **checked}, secrets={*stored, *said}).items():
        said.setdefault(path, sentences)
    if said:
        fields = {f"parameters.{path}" if path else "parameters": sentences for path, sentences in said.items()}
        raise Invalid(_("The parameters do not fit the spider."), fields=fields)


def _is_secret(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode("utf-8", "replace")) <= MAX_SECRET_BYTES


def _checked_name(name: Any, faults: dict[str, list[str]]) -> str:
    text = name.strip() if isinstance(name, str) else ""
    if not 0 < len(text) <= 200 or not text.isprintable():
        faults["name"] = [_("A job's name has 1 to 200 printable characters.")]
    return text


def _checked_limit(name: str, value: Any, faults: dict[str, list[str]]) -> Any:
    wanted = (int, float) if name == "cpus" else int
    if isinstance(value, bool) or not isinstance(value, wanted) or not math.isfinite(value):
        faults[name] = [_("Enter a number.")]
        return value
    try:
        Job._meta.get_field(name).run_validators(value)  # type: ignore[union-attr]  # a plain column
    except ValidationError as error:
        faults[name] = list(error.messages)
    return value


def _save(job: Job) -> None:
    try:
        with transaction.atomic():
            job.save()
    except IntegrityError as error:
        if "one_job_name_a_project" not in str(error):
            raise
        message = _("Project %(project)s already has a job named “%(name)s”.") % {
            "project": job.project.slug,
            "name": job.name,
        }
        raise JobNameTaken(message, fields={"name": [message]}) from error


# -- secrets ------------------------------------------------------------------------------------------------------


def _keep(job: Job, typed: Mapping[str, Any], by: int | None, now: datetime) -> dict[str, int]:
    who = User.objects.filter(pk=by).first() if by else None
    label = f"{job.spider.name}: "
    return {
        name: keep(project=job.project, label=label + name, value=value, by=who, now=now).pk
        for name, value in typed.items()
        if value is not None
    }


def _replace_secrets(job: Job, typed: Mapping[str, Any], by: User, now: datetime) -> None:
    untouched = {name: pk for name, pk in job.secrets.items() if name not in typed}
    job.secrets = {**untouched, **_keep(job, typed, by.pk, now)}


def _kept_for_run(
    job: Job, typed: Mapping[str, Any], by: Actor, now: datetime, idempotency_key: str | None
) -> dict[str, int]:
    """Secrets typed for one run. A repeated request with its key must give the same order, so the same rows."""
    typed = {name: value for name, value in typed.items() if value is not None}
    if typed and idempotency_key:
        earlier = Run.objects.filter(project=job.project, job=job, idempotency_key=idempotency_key).first()
        ids = {name: pk for name, pk in (earlier.spec.get("secrets") or {}).items() if name in typed} if earlier else {}
        if ids.keys() == typed.keys() and reveal(ids) == typed:
            return ids
    return _keep(job, typed, by.user_id, now)


def _drop_unused(job: Job, before: Mapping[str, int]) -> None:
    """Forget secrets the job has let go, unless a run still needs them (it may be run again)."""
    for name, pk in before.items():
        if job.secrets.get(name) != pk and not Run.objects.filter(job=job, spec__secrets__contains={name: pk}).exists():
            Secret.objects.filter(pk=pk).delete()
