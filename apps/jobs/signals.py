"""What other apps may listen to. Sent after the commit; a hint, never the only way to learn of a change."""

from django.dispatch import Signal

# Due times that nobody could fire in time. Keywords: schedule_id, job_id, times, last (the latest of them), reason as
# in the ledger.
times_missed = Signal()
