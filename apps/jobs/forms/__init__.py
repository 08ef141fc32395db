"""Forms of jobs: what every job has, when it runs, and parameters read from an address."""

from apps.jobs.forms.job_form import JobForm, changed_values, default_values
from apps.jobs.forms.prefill import prefilled
from apps.jobs.forms.schedule_form import ScheduleForm

__all__ = ["JobForm", "ScheduleForm", "changed_values", "default_values", "prefilled"]
