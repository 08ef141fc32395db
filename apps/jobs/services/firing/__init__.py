"""Firing: what becomes of each due time of a schedule, and the ledger of it."""

from apps.jobs.services.firing.changes import account_overdue
from apps.jobs.services.firing.clock import Look, look
from apps.jobs.services.firing.keeping import Keeper

__all__ = ["Keeper", "Look", "account_overdue", "look"]
