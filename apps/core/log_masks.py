"""Keeps what must stay secret out of the logs, whoever writes them."""

from __future__ import annotations

import logging
import re

# The address of a webhook is its secret; Django names the address of every request that it refuses.
_HOOK = re.compile(r"(/hooks/)[^/\s\"'?#<>]{20,}")


def masked(text: str) -> str:
    return _HOOK.sub(r"\1***", text)


class MaskingFormatter(logging.Formatter):
    """Masks the whole record, its traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))
