"""The two forms of a job page as one: what every job has, and the spider's parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.forms import BoundField

from apps.accounts.models import User
from apps.core.errors import PanelError
from apps.core.schema_forms import SchemaForm
from apps.jobs import services
from apps.jobs.forms.job_form import BASICS, JobForm
from apps.jobs.forms.policy_form import RETRY
from apps.jobs.models import Job
from apps.spiders.models import Spider


@dataclass(slots=True)
class JobPageForm:
    """`job` is missing where only parameters are asked for."""

    parameters: SchemaForm
    job: JobForm | None = None
    refused: list[str] = field(default_factory=list)

    def is_valid(self) -> bool:
        """Both are always checked: a person wants to see all faults at once."""
        answers = [self.parameters.is_valid(), self.job is None or self.job.is_valid()]
        return all(answers)

    @property
    def secrets(self) -> dict[str, str | None]:
        return {**self.parameters.secrets, **dict.fromkeys(self.parameters.cleared)}

    def save(self, *, by: User, now: datetime, spider: Spider | None = None, job: Job | None = None) -> Job:
        """Change `job`, or make one of `spider`."""
        assert self.job is not None  # noqa: S101 (a page that saves has both forms)
        changes = {**self.job.changes, "parameters": self.parameters.parameters, "secrets": self.secrets}
        if job is not None:
            return services.update_job(job=job, by=by, now=now, **changes)
        assert spider is not None  # noqa: S101 (a new job has a spider)
        return services.create_job(by=by, now=now, spider=spider, **changes)

    def take(self, error: PanelError) -> None:
        """Put each sentence of a refusal at its field."""
        self.refused.append(error.message)
        for name, sentences in error.fields.items():
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
    def wrong_sections(self) -> list[str]:
        return self.job.open_sections() if self.job is not None else []

    @property
    def wrong(self) -> bool:
        """Whether the page says so: a button that only rearranged the form is no attempt to save."""
        if self.parameters.was_rearranged:
            return False
        return bool(self.refused or self.parameters.errors or (self.job is not None and self.job.errors))
