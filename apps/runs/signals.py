"""What other apps may listen to. Sent after the commit; a hint, never the only way to learn of a change."""

from django.dispatch import Signal

# Keywords: run_id, frm, to (states as text).
run_changed = Signal()
