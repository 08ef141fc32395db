"""What parameters would become, without a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from apps.core.errors import PanelError
from apps.core.schema_forms import secret_names, validate, with_defaults
from apps.core.templating import each_text, names_in, root_of
from apps.jobs.models import Job
from apps.jobs.services.rendering.calling import make_calls
from apps.jobs.services.rendering.filling import Typed, arguments_of, name_faults, try_fill
from apps.jobs.services.template_names import OUTSIDE, sample_names
from apps.spiders.models import Version


@dataclass(frozen=True, slots=True)
class Preview:
    """Values with templates filled in, `faults` by place, and at which places only the run will tell (`open`)."""

    parameters: Mapping[str, Any]
    env: Mapping[str, str]
    command: tuple[str, ...]
    faults: Mapping[str, list[str]] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    # What was typed where something else is shown now.
    templates: Mapping[str, str] = field(default_factory=dict)


def preview(
    *,
    job: Job,
    version: Version,
    parameters: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    arguments: Collection[str] = (),
    instant: datetime,
    zone: str,
    now: datetime,
    call: bool = False,
) -> Preview:
    """A job that is not saved yet does too. Calls are made only when asked to; what an upstream run puts out, and the
    name of the node, stay as they were typed."""
    schema = version.parameter_schema
    secret = secret_names(schema)
    whole = with_defaults(schema, {name: value for name, value in parameters.items() if name not in secret})
    command = (*version.command, *arguments_of(job, arguments))
    env = env or {}
    typed = Typed.among(whole, env, command, ())
    faults = name_faults(job=job, schema=schema, typed=typed)
    names = sample_names(job, now=now, instant=instant, zone=zone)
    closed = {"upstream", *(() if call else ("call",))}
    if call and not faults and any(root_of(name) == "call" for name in typed.names()):
        try:
            names = replace(names, calls=make_calls(job.calls, names=names, secrets=job.secrets))
        except PanelError as error:
            faults |= error.fields
            closed = set(OUTSIDE)

    def is_open(text: str) -> bool:
        return any(root_of(name) in closed for name in names_in(text))

    done = try_fill(
        schema=schema, typed=typed, parameters=whole, env=env, command=command, names=names, is_open=is_open
    )
    for place, said in done.faults.items():
        faults.setdefault(place, said)
    texts = {".".join(map(str, place)): (place, text) for place, text in _texts(typed)}
    unknown = [place[1:] for place, text in texts.values() if place[0] == "parameters" and is_open(text)]
    wrong = [tuple(place.split(".")[1:]) for place in faults if place.startswith("parameters.")]
    for path, said in validate(schema, done.parameters, secrets=secret, unknown=[*unknown, *wrong]).items():
        faults.setdefault(f"parameters.{path}" if path else "parameters", said)
    return Preview(
        done.parameters,
        done.env,
        tuple(done.command),
        faults,
        {place: text for place, (_path, text) in texts.items() if is_open(text) or _waits(place, done.later)},
        {place: text for place, (_path, text) in texts.items()},
    )


def _waits(place: str, later: Mapping[str, Any]) -> bool:
    """For the name of the node."""
    part, _dot, name = place.partition(".")
    return name in later.get(part, {})


def _texts(typed: Typed) -> list[tuple[tuple[str | int, ...], str]]:
    found = list(each_text(typed.parameters, ("parameters",)))
    found += each_text(typed.env, ("env",))
    return found + list(each_text(typed.command, ("command",)))
