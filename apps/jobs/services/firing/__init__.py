"""Firing: what becomes of each due time of a schedule, and the ledger of it."""

from apps.jobs.services.firing.clock import Look, look
from apps.jobs.services.firing.keeping import Keeper
from apps.jobs.services.ledger import account_overdue

__all__ = ["Keeper", "Look", "account_overdue", "look"]
