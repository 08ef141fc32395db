"""Environment variables that people give to jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

MAX_VARIABLES = 100
MAX_VALUE_BYTES = 8 * 1024
MAX_TOTAL_BYTES = 64 * 1024
_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,127}\Z")
# curl and others read these in lower case only.
_LOWER_CASE = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
# The start of a run depends on these.
_OURS = frozenset({"PYTHONPATH", "PYTHONUNBUFFERED", "HOME", "PATH"})


def check_environment(variables: Any) -> dict[str, list[str]]:
    """Faults by variable name ("" for the whole), empty when all may be set."""
    if not isinstance(variables, Mapping):
        return {"": [_("Environment variables are an object with a text for each name.")]}
    if len(variables) > MAX_VARIABLES:
        return {"": [_("At most %(limit)d environment variables are allowed.") % {"limit": MAX_VARIABLES}]}
    faults = {str(name): [said] for name, value in variables.items() if (said := _fault(name, value))}
    if not faults and sum(len(name) + len(value.encode()) for name, value in variables.items()) > MAX_TOTAL_BYTES:
        return {"": [_("Environment variables have at most %(kib)d KiB together.") % {"kib": MAX_TOTAL_BYTES // 1024}]}
    return faults


def _fault(name: Any, value: Any) -> str:
    if not isinstance(name, str) or not (_NAME.match(name) or name in _LOWER_CASE):
        return _("A variable's name has A-Z, 0-9 and _, and does not begin with a digit.")
    if name.startswith("CLAW_") or name in _OURS:
        return _("%(name)s is set by the panel and cannot be given.") % {"name": name}
    if not isinstance(value, str):
        return _("The value of a variable is a text.")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        return _("The value holds a character that cannot be passed on.")
    if len(value.encode()) > MAX_VALUE_BYTES:
        return _("The value of a variable has at most %(kib)d KiB.") % {"kib": MAX_VALUE_BYTES // 1024}
    return ""
