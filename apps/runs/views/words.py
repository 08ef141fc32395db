"""Words the page's scripts need, in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext as _


def log_words() -> dict[str, str]:
    return {
        "lines": _("%(n)s lines"),
        "shown": _("%(n)s shown"),
        "live": _("live"),
        "complete": _("complete"),
        "line": _("Line %(n)s"),
        "no_match": _("No match"),
        "searching": _("Searching…"),
        "more": _("%(n)s more characters"),
        "retrying": _("Connection lost, retrying…"),
        "signed_out": _("You are signed out. Sign in again to go on."),
        "no_right": _("You may not read this log any more."),
        "nothing": _("This run printed nothing."),
        "nothing_yet": _("No lines yet."),
        "nothing_shown": _("No lines at this level."),
        "cleared": _("Cleared. New lines appear here."),
    }


def chart_words() -> dict[str, str]:
    return {
        "time": _("Time"),
        "cpu": _("CPU"),
        "memory": _("Memory"),
        "limit": _("Limit"),
        "items": _("Items a minute"),
    }
