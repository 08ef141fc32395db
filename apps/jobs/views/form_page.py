"""The forms of a job page as one: what every job has, the spider's parameters, and when it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.forms import BoundField

from apps.accounts.models import User
from apps.core.errors import PanelError
from apps.core.schema_forms import SchemaForm
from apps.jobs import services
from apps.jobs.forms.job_form import BASICS, COMMAND, JobForm
from apps.jobs.forms.policy_form import RETRY
from apps.jobs.forms.schedule_form import ScheduleForm
from apps.jobs.models import Job
from apps.jobs.services.composing import WHEN
from apps.spiders.models import Spider


@dataclass(slots=True)
class JobPageForm:
    """`job` is missing where only parameters are asked for, `when` where nothing may or can be said of times."""

    parameters: SchemaForm
    job: JobForm | None = None
    when: ScheduleForm | None = None
    refused: list[str] = field(default_factory=list)

    def is_valid(self) -> bool:
        """All are always checked: a person wants to see all faults at once."""
        answers = [form.is_valid() for form in (self.parameters, self.job, self.when) if form is not None]
        return all(answers)

    @property
    def secrets(self) -> dict[str, str | None]:
        return {**self.parameters.secrets, **dict.fromkeys(self.parameters.cleared)}

    def save(self, *, by: User, now: datetime, spider: Spider | None = None, job: Job | None = None) -> Job:
        """Change `job`, or make one of `spider`."""
        assert self.job is not None  # noqa: S101 (a page that saves has both forms)
        changes = {**self.job.changes, "parameters": self.parameters.parameters, "secrets": self.secrets}
        planned: dict[str, Any] = {}
        if self.when is not None and (self.when.by_hand or self.when.has_news):
            when = None if self.when.by_hand else self.when.changes
            planned = {"schedule": self.when.schedule, "when": when, "seen": self.when.seen_at}
        return services.save_job_with_schedule(by=by, now=now, job=job, spider=spider, changes=changes, **planned)

    def take(self, error: PanelError) -> None:
        """Put each sentence of a refusal at its field."""
        self.refused.append(error.message)
        said_of_times = {n.removeprefix(WHEN): said for n, said in error.fields.items() if n.startswith(WHEN)}
        if self.when is not None and said_of_times:
            self.when.take(PanelError(error.message, fields=said_of_times))
        for name, sentences in error.fields.items():
            if name.startswith(WHEN):
                continue
            # The services call it retry.attempts, a box of the form retry_attempts.
            box = name.replace("retry.", RETRY, 1)
            for sentence in sentences:
                if self.job is not None and box in self.job.fields:
                    self.job.add_error(box, sentence)
                    self.job.mark_wrong(box)
                else:
                    path = name.removeprefix("parameters.")
                    self.parameters.errors.setdefault(path, []).append(sentence)

    @property
    def wrong_limits(self) -> bool:
        """Whether something in the section of limits is."""
        return self.job is not None and any(name in self.job.errors for name in BASICS if name != "name")

    @property
    def basics(self) -> list[BoundField]:
        """Boxes of the section of limits."""
        return [self.job[name] for name in BASICS if name != "name"] if self.job is not None else []

    @property
    def command(self) -> list[BoundField]:
        """Boxes of arguments and calls."""
        return [self.job[name] for name in COMMAND if name in self.job.fields] if self.job is not None else []

    @property
    def has_command(self) -> bool:
        return any(box.value() for box in self.command)

    @property
    def wrong_command(self) -> bool:
        return self.job is not None and any(name in self.job.errors for name in COMMAND)

    @property
    def wrong_sections(self) -> list[str]:
        return self.job.open_sections() if self.job is not None else []

    @property
    def wrong(self) -> bool:
        """Whether the page says so: a button that only rearranged the form is no attempt to save."""
        if self.parameters.was_rearranged:
            return False
        forms = (self.parameters, self.job, self.when)
        return bool(self.refused or any(form.errors for form in forms if form is not None))
