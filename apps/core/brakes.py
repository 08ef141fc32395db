"""A brake on programs that run wild: counts in windows of a minute, in the cache."""

from __future__ import annotations

import logging
from datetime import datetime

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60


def seconds_to_wait(key: str, *, most: int, now: datetime) -> float:
    """Counts one for `key`, by one increment: 0 while there were at most so many this minute, else the rest of it."""
    window, gone = divmod(now.timestamp(), WINDOW_SECONDS)
    place = f"throttle:{key}:{int(window)}"
    try:
        cache.add(place, 0, timeout=2 * WINDOW_SECONDS)
        return 0.0 if cache.incr(place) <= most else WINDOW_SECONDS - gone
    except (RedisError, OSError, ValueError) as error:
        # Without the cache all goes on unbraked: the cache is never needed for an answer.
        logger.warning("%s not counted: %s", key, error)
        return 0.0
