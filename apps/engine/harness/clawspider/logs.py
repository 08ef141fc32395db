"""Logging to stderr in a form whose level the panel recognises: `2026-11-30 12:00:00,123 [quotes] INFO: text`."""

from __future__ import annotations

import io
import logging
import os
import sys

FORMAT = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"
_NAMES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def level_from_environment(default: int = logging.INFO) -> int:
    name = os.environ.get("CLAW_LOG_LEVEL", "").upper()
    return int(getattr(logging, name)) if name in _NAMES else default


def configure(level: int | None = None) -> None:
    """Send all logging to stderr. Odd characters are written escaped rather than ending the crawl."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    level = level_from_environment() if level is None else level
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)  # a logger with a level of its own reaches handlers whatever the root's level is
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a closed stderr is no reason to print more to it
