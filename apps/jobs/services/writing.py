"""Making, changing and deleting jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.environment import check_environment
from apps.core.errors import Conflict, Invalid
from apps.jobs.models import Job
from apps.jobs.policies import Faults, check_retry
from apps.jobs.selectors import version_of
from apps.jobs.services.commands import take_command
from apps.jobs.services.limits import CHOICES, NUMBERS, SPANS, take_limits
from apps.jobs.services.locking import locked_job
from apps.jobs.services.parameters import drop_unused, replace_secrets, take_parameters
from apps.jobs.services.placing import check_capacity, take_pools, take_selector
from apps.jobs.services.repairs import take_repair_job
from apps.jobs.services.schedules.locking import lock_schedules_of
from apps.jobs.services.schedules.rows import drop_unused as drop_unused_rows
from apps.jobs.services.schedules.rows import rename_rows, used_rows
from apps.runs.models import Batch, Run
from apps.spiders.models import Spider, Version

# What the version of the spider may say, and None leaves to it.
LIMITS = ("memory_mb", "cpus", "timeout_seconds", "grace_seconds", "priority")
_CHANGEABLE = frozenset(
    {
        *("name", "parameters", "secrets", "version", "env", "arguments", "calls"),
        *(*NUMBERS, *SPANS, *CHOICES, "overlap_max"),
        *("retry", "pools", "selector", "repair_job"),
    }
)


class JobNameTaken(Conflict):
    code = "job_name_taken"


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
    env: Mapping[str, str] | None = None,
    **policies: Any,
) -> Job:
    """`policies` are columns of a job by their names; spans may be texts such as "1h30m", pools names or ids.

    Limits that are None come from the version, else from the model. Secrets may also stand in the parameters.
    """
    _refuse_unknown(policies)
    job = Job(project=spider.project, spider=spider, version=version, created_by=by, created_at=now, updated_at=now)
    for limit, value in _default_limits(version_of(job)).items():
        setattr(job, limit, value)
    changes = {each: value for each, value in policies.items() if value is not None or each not in LIMITS}
    changes |= {"name": name, "parameters": parameters, "secrets": secrets or {}, "env": env or {}}
    _write(job, by, now, changes)
    return job


@transaction.atomic
def update_job(*, job: Job, by: User, now: datetime, **changes: Any) -> Job:
    """Change any of what `create_job` takes, except the spider. A secret of None is dropped, unnamed ones stay."""
    _refuse_unknown(changes)
    locked = locked_job(job)
    before, name = dict(locked.secrets), locked.name
    locked.updated_at = now
    _write(locked, by, now, changes)
    drop_unused(locked, before)
    if locked.name != name:
        rename_rows(locked)
    return locked


@transaction.atomic
def delete_job(*, job: Job, by: User, now: datetime) -> None:
    """Its runs stay: all they need is in them. Its schedules and their rows of django-celery-beat go with it."""
    locked = locked_job(job)
    lock_schedules_of(locked)
    used = used_rows(locked.schedules.values_list("task_id", flat=True))
    before, locked.secrets = dict(locked.secrets), {}
    drop_unused(locked, before)
    _lock_open_batches(locked)
    locked.delete()
    drop_unused_rows(used)


def _lock_open_batches(job: Job) -> None:
    """Before their runs lose the job: whoever settles a batch takes its lock before that of its runs too."""
    named = Run.objects.filter(job=job, batch__finished_at=None, batch__isnull=False)
    batches = Batch.objects.filter(Q(pk__in=named.values("batch")) | Q(job=job, finished_at=None))
    list(batches.select_for_update(no_key=True).order_by("pk").values_list("pk"))


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    if unknown := changes.keys() - _CHANGEABLE:
        raise TypeError(f"not a field of a job that can be changed: {', '.join(sorted(unknown))}")


def _default_limits(version: Version | None) -> dict[str, Any]:
    limits = version.default_limits if version else {}
    return {name: limits[name] for name in LIMITS if name in limits}


def _write(job: Job, by: User, now: datetime, changes: dict[str, Any]) -> None:
    """Check everything, so that a person sees all faults at once; then save."""
    faults: Faults = {}
    if "version" in changes:
        job.version = changes["version"]
    if job.version is not None and job.version.spider_id != job.spider_id:
        faults["version"] = [_("This version belongs to another spider.")]
    if "name" in changes:
        job.name = _checked_name(changes["name"], faults)
    if "env" in changes:
        for name, said in check_environment(changes["env"]).items():
            faults.setdefault("env", []).extend(f"{name}: {text}" if name else text for text in said)
        job.env = changes["env"]
    take_limits(job, changes, faults=faults)
    if "retry" in changes:
        retry, said_of_retry = check_retry(changes["retry"])
        job.retry = retry.as_spec()
        faults.update(said_of_retry)
    take_selector(job, changes, faults=faults)
    check_capacity(job, changes, faults=faults)
    pools = take_pools(changes, faults=faults)
    take_command(job, changes, now=now, faults=faults)
    take_repair_job(job, changes, by=by, faults=faults)
    typed: dict[str, Any] = {}
    if not faults.get("version") and changes.keys() & {"parameters", "secrets", "version", "calls"}:
        typed = take_parameters(job, changes, now=now, faults=faults)
    if faults:
        raise Invalid(_("Some of this cannot be taken."), fields=faults)
    replace_secrets(job, typed, by=by, now=now)
    _save(job)
    if pools is not None:
        job.pools.set(pools)


def _checked_name(name: Any, faults: dict[str, list[str]]) -> str:
    text = name.strip() if isinstance(name, str) else ""
    if not 0 < len(text) <= 200 or not text.isprintable():
        faults["name"] = [_("A job's name has 1 to 200 printable characters.")]
    return text


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
