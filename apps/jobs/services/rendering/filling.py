"""From what was typed to what the run gets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _

from apps.core.errors import Invalid
from apps.core.schema_forms import UNKNOWN, with_values
from apps.core.templating import (
    Known,
    TemplateFault,
    Values,
    canonical,
    check,
    each_text,
    is_template,
    names_in,
    render,
    render_for_later,
    root_of,
)
from apps.jobs.models import Job
from apps.jobs.services.template_names import NODE, OUTSIDE, Names, known_in_command, known_in_parameters
from apps.spiders.models import Spider, Version

# What the kernel takes as one argument or one variable, with the zero at its end.
MAX_ARGUMENT = 128 * 1024


@dataclass(frozen=True, slots=True)
class Filled:
    """Values as the run gets them. Not `ready`: they are as they were, for some need a call or an upstream run first.

    The rest is as RunOrder keeps it; `run_id` is set where a value names the run.
    """

    parameters: Mapping[str, Any]
    env: Mapping[str, str]
    arguments: tuple[str, ...]
    ready: bool = True
    templates: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    later: Mapping[str, Any] = field(default_factory=dict)
    calls: Mapping[str, Any] = field(default_factory=dict)
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class Typed:
    """Only what holds templates: parameters and variables by name, pieces of the command by their number."""

    parameters: Mapping[str, Any]
    env: Mapping[str, str]
    command: Mapping[str, str]

    @classmethod
    def among(
        cls, parameters: Mapping[str, Any], env: Mapping[str, str], command: Collection[str], literal: Collection[str]
    ) -> Typed:
        return cls(
            {name: value for name, value in parameters.items() if name not in literal and any(each_text(value))},
            {name: value for name, value in env.items() if is_template(value)},
            {str(index): text for index, text in enumerate(command) if is_template(text)},
        )

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Typed:
        return cls(stored.get("parameters") or {}, stored.get("env") or {}, stored.get("command") or {})

    def stored(self) -> dict[str, Any]:
        parts = {"parameters": self.parameters, "env": self.env, "command": self.command}
        return {name: dict(part) for name, part in parts.items() if part}

    def texts(self) -> list[str]:
        inside = [text for _place, text in each_text(self.parameters)]
        return [*inside, *self.env.values(), *self.command.values()]

    def names(self) -> list[tuple[str, ...]]:
        return [name for text in self.texts() for name in names_in(text)]


def filled_in(
    *,
    job: Job,
    version: Version,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    instant: datetime,
    zone: str,
    now: datetime,
    literal: Collection[str] = (),
) -> Filled:
    """Dates are of the `instant`, in the time zone `zone`. Parameters named `literal` are left as they are, whatever
    they look like: they came from outside, by a webhook. Raises Invalid, with the sentence at its place."""
    arguments = arguments_of(job, job.arguments)
    command = (*version.command, *arguments)
    typed = Typed.among(parameters, env, command, literal)
    if not typed.texts():
        _check_sizes(command, env)
        return Filled(parameters, env, arguments)
    schema = version.parameter_schema
    refuse(name_faults(job=job, schema=schema, typed=typed))
    names = typed.names()
    wanted_calls = {name[1] for name in names if root_of(name) == "call" and len(name) > 1}
    if any(root_of(name) in OUTSIDE for name in names):
        calls = {name: call for name, call in job.calls.items() if name in wanted_calls}
        return Filled(parameters, env, arguments, False, typed.stored(), calls=calls)
    run_id = _next_run_id() if any(canonical(name, ("run.id",)) for name in names) else None
    values = Names(
        instant=instant,
        zone=zone,
        now=now,
        run_id=run_id,
        job_id=job.pk,
        job_name=job.name,
        spider=job.spider.name,
        project=job.project.name,
    )
    done = fill(schema=schema, typed=typed, parameters=parameters, env=env, command=command, names=values)
    length = len(version.command)
    return Filled(
        done.parameters,
        done.env,
        tuple(done.command[length:]),
        templates=typed.stored(),
        command=tuple(done.command[:length]),
        later=done.later,
        run_id=run_id,
    )


def arguments_of(job: Job, arguments: Collection[str]) -> tuple[str, ...]:
    """Only a spider that is a command has arguments: the others are started by a program that has options of its own,
    which no value must ever become."""
    return tuple(arguments) if job.spider.kind == Spider.Kind.COMMAND else ()


def _next_run_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('runs_run', 'id'))")
        return int(cursor.fetchone()[0])


@dataclass(slots=True)
class Done:
    parameters: dict[str, Any]
    env: dict[str, str]
    command: list[str]
    later: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)


def fill(
    *,
    schema: Mapping[str, Any],
    typed: Typed,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    command: Collection[str],
    names: Names,
) -> Done:
    """All templates with their values. Raises Invalid."""
    done = try_fill(schema=schema, typed=typed, parameters=parameters, env=env, command=command, names=names)
    refuse(done.faults)
    return done


def try_fill(
    *,
    schema: Mapping[str, Any],
    typed: Typed,
    parameters: Mapping[str, Any],
    env: Mapping[str, str],
    command: Collection[str],
    names: Names,
    is_open: Callable[[str], bool] = lambda _text: False,
) -> Done:
    """The same with its faults told. A text that is `open` stays as it is."""
    values = names.values()
    known = with_values(schema, typed.parameters, lambda text: UNKNOWN if is_open(text) else render(text, values))
    faults = {f"parameters.{path}": said for path, said in known.faults.items()}
    done = Done({**parameters, **known.parameters}, dict(env), list(command), faults=faults)
    with_parameters = names.values(done.parameters)
    for name, text in typed.env.items():
        if not is_open(text):
            _put(done, done.env, ("env", name), text, with_parameters)
    for number, text in typed.command.items():
        if not is_open(text):
            _put(done, done.command, ("command", number), text, with_parameters)
    if not done.faults:
        done.faults = _size_faults(done.command, done.env)
    return done


def _put(done: Done, into: Any, place: tuple[str, str], text: str, values: Values) -> None:
    """What names the node stays a template, with its pieces beside it."""
    part, name = place
    key = int(name) if part == "command" else name
    try:
        found = render_for_later(text, values, NODE)
    except TemplateFault as fault:
        done.faults[f"{part}.{name}"] = [fault.message]
        return
    if isinstance(found, str):
        into[key] = found
    else:
        done.later.setdefault(part, {})[name] = found


def refuse(faults: Mapping[str, list[str]]) -> None:
    if not faults:
        return
    place, said = next(iter(faults.items()))
    raise Invalid(_("%(place)s: %(sentence)s") % {"place": place, "sentence": said[0]}, fields=faults)


# -- checks -----------------------------------------------------------------------------------------------------------


def name_faults(*, job: Job, schema: Mapping[str, Any], typed: Typed) -> dict[str, list[str]]:
    """What cannot be read, or names what there is not."""
    faults: dict[str, list[str]] = {}

    def note(known: Known, value: Any, *place: str | int) -> None:
        for where, text in each_text(value, place):
            if said := check(text, known):
                faults[".".join(map(str, where))] = said

    note(known_in_parameters(job), typed.parameters, "parameters")
    in_command = known_in_command(job, schema)
    note(in_command, typed.env, "env")
    note(in_command, typed.command, "command")
    return faults


def _check_sizes(command: Collection[str], env: Mapping[str, str]) -> None:
    refuse(_size_faults(command, env))


def _size_faults(command: Collection[str], env: Mapping[str, str]) -> dict[str, list[str]]:
    """What the kernel would refuse, said before anything is started."""
    faults: dict[str, list[str]] = {}
    for index, text in enumerate(command):
        if said := argument_fault(text):
            faults[f"command.{index}"] = [said]
    for name, value in env.items():
        if said := argument_fault(f"{name}={value}"):
            faults[f"env.{name}"] = [said]
    return faults


def argument_fault(text: str) -> str:
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return _("This holds a character that cannot be passed to a program.")
    size = len(text.encode())
    if size >= MAX_ARGUMENT:
        values = {"size": size, "most": MAX_ARGUMENT - 1}
        return _("This has %(size)d bytes; at most %(most)d can be passed to a program.") % values
    return ""
