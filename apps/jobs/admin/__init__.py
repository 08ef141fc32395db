"""Jobs and their times in the admin."""

from apps.jobs.admin.hooks import HookAdmin
from apps.jobs.admin.jobs import JobAdmin

__all__ = ["HookAdmin", "JobAdmin"]
