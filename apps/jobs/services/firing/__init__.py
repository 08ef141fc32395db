"""Firing: what becomes of each due time of a schedule, and the ledger of it."""

from apps.jobs.services.firing.changes import account_overdue
from apps.jobs.services.firing.clock import Look, look

__all__ = ["Look", "account_overdue", "look"]
