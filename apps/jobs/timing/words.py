"""Rules in words, in the language of the reader."""

from __future__ import annotations

from apps.jobs.timing.rules import Rule


def words(rule: Rule) -> str:
    """Such as "every weekday at 09:30"; without a zone and without a full stop."""
    raise NotImplementedError
