"""Run a job from a shell or a crontab: `manage.py run_job JOB --param k=v --wait`."""

from __future__ import annotations

import getpass
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.core.actors import Actor
from apps.core.errors import PanelError
from apps.core.schema_forms import split_secrets
from apps.jobs import selectors as jobs
from apps.jobs import services
from apps.jobs.models import Job
from apps.runs import reasons
from apps.runs import selectors as runs
from apps.runs.models import Run
from apps.runs.services import request_stop
from apps.runs.states import TERMINAL, State, Trigger

POLL_SECONDS = 0.3
INTERRUPTED = 130
EXIT_CODES = {State.SUCCEEDED: 0, State.FAILED: 1, State.TIMED_OUT: 2, State.CANCELED: 3}
LOST = 4


class Command(BaseCommand):
    help = (
        "Run a job. With --wait its log goes to stdout and the exit code tells the outcome: 0 succeeded, 1 failed, "
        "2 timed out, 3 canceled, 4 lost or skipped. Ctrl-C exits with 130 and leaves the run going."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", help="id or name of the job")
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter laid over the job's; what is not a text in the schema is written as JSON",
        )
        parser.add_argument("--wait", action="store_true", help="print the log and wait for the end")
        parser.add_argument("--stop-on-interrupt", action="store_true", help="Ctrl-C stops the run too")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        version = jobs.version_of(job)
        schema = version.parameter_schema if version else {}
        plain, secrets = split_secrets(schema, read_parameters(options["param"], schema))
        who = Actor("cli", user_name())
        try:
            run, _new = services.run_job(
                job=job, by=who, now=timezone.now(), trigger=Trigger.CLI, parameters=plain, secrets=secrets
            )
        except PanelError as error:
            places = [f"  {path}: {' '.join(sentences)}" for path, sentences in error.fields.items()]
            raise CommandError("\n".join([error.message, *places])) from error
        self.stderr.write(" ".join([f"Run {run.pk} of job {job.name} is {run.state}.", reasons.sentence(run)]).strip())
        if options["wait"]:
            sys.exit(self._wait(run, who, stop=options["stop_on_interrupt"]))

    def _wait(self, run: Run, who: Actor, *, stop: bool) -> int:
        try:
            return self._follow(run)
        except KeyboardInterrupt:
            if stop:
                try:
                    request_stop(run=run, by=who, now=timezone.now())
                    self.stderr.write(f"Run {run.pk} is being stopped.")
                except PanelError as error:
                    self.stderr.write(error.message)
            else:
                self.stderr.write(f"Run {run.pk} goes on.")
            return INTERRUPTED

    def _follow(self, run: Run) -> int:
        line = 0
        while True:
            # The state first: what is stored before the end is then read before we leave.
            run.refresh_from_db()
            page = runs.log_page(run, after=line)
            for _line, _at, _level, text in page.rows:
                self.stdout.write(text)
            line = page.scanned
            if not page.complete:
                continue
            self.stdout.flush()
            if run.state in TERMINAL:
                sentence = reasons.sentence(run)
                self.stderr.write(f"Run {run.pk} {run.state}.{' ' if sentence else ''}{sentence}")
                return EXIT_CODES.get(State(run.state), LOST)
            time.sleep(POLL_SECONDS)


def find_job(word: str) -> Job:
    """By id, else by name; a name that two projects use needs the id."""
    if word.isascii() and word.isdigit():
        found = list(Job.objects.filter(pk=int(word)))
    else:
        found = list(Job.objects.filter(name=word).order_by("pk")[:10])
    if not found:
        raise CommandError(f"There is no job {word}.")
    if len(found) > 1:
        raise CommandError(f"Several jobs have this name; say the id: {', '.join(str(job.pk) for job in found)}.")
    return found[0]


def read_parameters(pairs: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    """`NAME=VALUE` by the schema's type: texts as they are, the rest as JSON."""
    read: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"--param takes NAME=VALUE, not {pair!r}.")
        kinds = schema.get("properties", {}).get(name, {}).get("type", "string")
        if "string" in ([kinds] if isinstance(kinds, str) else kinds):
            read[name] = value
            continue
        try:
            read[name] = json.loads(value)
        except ValueError as error:
            raise CommandError(f"--param {name} takes JSON of type {kinds}, not {value!r}.") from error
    return read


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
