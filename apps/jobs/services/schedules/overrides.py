"""Parameters of a schedule, laid over those of its job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.core.errors import Invalid
from apps.core.schema_forms import secret_names, with_defaults
from apps.jobs.models import Schedule
from apps.jobs.policies import Faults
from apps.jobs.selectors import version_of
from apps.jobs.services.parameters import check_parameters
from apps.jobs.services.template_names import known_in_parameters, samples


def take_parameters(schedule: Schedule, given: Any, *, now: datetime, faults: Faults) -> None:
    """Faults are named `parameters.<path>`; those of the job's own values are the job's."""
    if not isinstance(given, Mapping):
        faults["parameters"] = [_("Parameters are an object with a value for each name.")]
        return
    schedule.parameters = dict(given)
    version = version_of(schedule.job)
    if version is None or not given:
        return
    schema, job = version.parameter_schema, schedule.job
    secrets = secret_names(schema)
    for name in given.keys() & {*secrets}:
        faults[f"parameters.{name}"] = [_("A secret is kept by the job, not by its schedules.")]
    known = schema.get("properties", {}).keys()
    ours = {name: value for name, value in job.parameters.items() if name in known}
    plain = {name: value for name, value in given.items() if name not in secrets}
    stored = {name: pk for name, pk in job.secrets.items() if name in secrets}
    try:
        whole = with_defaults(schema, {**ours, **plain})
        render = samples(job, known_in_parameters(job), now=now)
        check_parameters(schema, whole, typed={}, stored=stored, render=render)
    except Invalid as error:
        faults.update({path: said for path, said in error.fields.items() if _is_of(path, given)})


def _is_of(path: str, given: Mapping[str, Any]) -> bool:
    """Whether the fault lies in what the schedule says, or between it and the rest."""
    name = path.removeprefix("parameters").lstrip(".").split(".")[0]
    return not name or name in given
