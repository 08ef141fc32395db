"""Jobs and their times in the admin."""

from apps.jobs.admin.call_hosts import CallHostAdmin
from apps.jobs.admin.hooks import HookAdmin
from apps.jobs.admin.jobs import JobAdmin

__all__ = ["CallHostAdmin", "HookAdmin", "JobAdmin"]
