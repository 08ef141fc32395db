"""Cron expressions as people write them, and as they are stored: five fields of numbers."""

from __future__ import annotations


def check_cron(text: str, *, seed: int = 0) -> str:
    """The expression in five plain fields, `@daily`, names, wrapped ranges and `~` resolved; or BadRule."""
    return spread(text, seed)


def spread(text: str, seed: int) -> str:
    """The expression with the minute that this seed (the number of a job or schedule) always gets for `~` or `H`."""
    return text


def joined(*, minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str) -> str:
    """One expression of the five columns of a crontab row."""
    columns = (minute, hour, day_of_month, month_of_year, day_of_week)
    return " ".join("".join(column.split()) for column in columns)
