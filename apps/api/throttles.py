"""A brake on programs that run wild, far above what a person or an honest program needs."""

from __future__ import annotations

import logging
from typing import Any

from django.core.cache import cache
from django.utils import timezone
from redis.exceptions import RedisError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

logger = logging.getLogger(__name__)

WRITES_A_MINUTE = 600
READS_A_MINUTE = 6000
WINDOW_SECONDS = 60


class UserThrottle(BaseThrottle):
    """Counts a user's requests in windows of a minute; one increment a request."""

    seconds_left = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        user_id = getattr(request.user, "pk", None)
        if user_id is None:
            return True
        kind, limit = ("r", READS_A_MINUTE) if request.method in SAFE_METHODS else ("w", WRITES_A_MINUTE)
        window, gone = divmod(timezone.now().timestamp(), WINDOW_SECONDS)
        self.seconds_left = WINDOW_SECONDS - gone
        key = f"throttle:{kind}:{user_id}:{int(window)}"
        try:
            cache.add(key, 0, timeout=2 * WINDOW_SECONDS)
            return bool(cache.incr(key) <= limit)
        except (RedisError, OSError, ValueError) as error:
            # Without the cache the API goes on unbraked: the cache is never needed for an answer.
            logger.warning("request of user %s not counted: %s", user_id, error)
            return True

    def wait(self) -> float:
        return self.seconds_left
