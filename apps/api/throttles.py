"""The brake of the API, far above what a person or an honest program needs."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apps.core.brakes import seconds_to_wait

WRITES_A_MINUTE = 600
READS_A_MINUTE = 6000


class UserThrottle(BaseThrottle):
    """Counts a user's requests, reads and writes apart."""

    seconds_left = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        user_id = getattr(request.user, "pk", None)
        if user_id is None:
            return True
        kind, limit = ("r", READS_A_MINUTE) if request.method in SAFE_METHODS else ("w", WRITES_A_MINUTE)
        self.seconds_left = seconds_to_wait(f"{kind}:{user_id}", most=limit, now=timezone.now())
        return not self.seconds_left

    def wait(self) -> float:
        return self.seconds_left
