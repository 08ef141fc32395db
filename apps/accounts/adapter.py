"""How people get in."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedAccountAdapter(DefaultAccountAdapter):
    """Accounts are made by an administrator, nobody signs up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
