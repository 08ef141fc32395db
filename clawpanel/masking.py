"""Masks secret addresses in daphne's own access log, which does not go through logging.

The panel starts daphne without that log; whoever starts it with `--access-log` gets it masked.
"""

from __future__ import annotations

from typing import Any

from daphne.access import AccessLogGenerator

from apps.core.log_masks import masked


def install() -> None:
    write: Any = AccessLogGenerator.write_entry
    if hasattr(write, "masked"):
        return

    def write_entry(self: Any, host: str, date: Any, request: str, *rest: Any, **more: Any) -> None:
        write(self, host, date, masked(request), *rest, **more)

    write_entry.masked = True  # type: ignore[attr-defined]  # a mark for a second call
    AccessLogGenerator.write_entry = write_entry  # type: ignore[method-assign]  # the point of this module
