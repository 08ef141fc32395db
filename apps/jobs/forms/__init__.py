"""Forms of jobs: what every job has, and parameters read from an address."""

from apps.jobs.forms.job_form import JobForm, changed_values, default_values
from apps.jobs.forms.prefill import prefilled

__all__ = ["JobForm", "changed_values", "default_values", "prefilled"]
