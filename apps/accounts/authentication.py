"""How programs get in: `Authorization: Token claw_…`."""

from __future__ import annotations

import re
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from apps.accounts.models import ApiToken, User
from apps.accounts.services import note_use

# What scope `run` may do with runs beside looking. A view says otherwise with `token_scope`: "run" where it is no
# viewset, "write" where its actions of these names do something else.
RUN_ACTIONS = frozenset({"run", "stop", "kill", "pause", "resume", "rerun", "bulk", "again"})
_TOKEN = re.compile(rb"[A-Za-z0-9_]{20,128}\Z")


class ApiTokenAuthentication(TokenAuthentication):
    """One look-up by hash; expired tokens are refused but kept, so that their owner sees why."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        found: tuple[User, ApiToken] | None = super().authenticate(request)  # type: ignore[no-untyped-call]
        if found is not None:
            _check_scope(request, found[1])
            note_use(token=found[1], now=timezone.now())
        return found

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        if not _TOKEN.match(token):
            raise AuthenticationFailed(_("This is not a token of this panel."))
        row = ApiToken.objects.select_related("user").filter(digest=hash_token(token.decode("ascii"))).first()
        if row is None:
            raise AuthenticationFailed(_("This is not a token of this panel."))
        if row.expiry is not None and row.expiry <= timezone.now():
            raise AuthenticationFailed(_("This token has expired."))
        if not row.user.is_active:
            raise AuthenticationFailed(_("This account is deactivated."))
        return row.user, row


def _check_scope(request: Request, token: ApiToken) -> None:
    if request.method in SAFE_METHODS or token.scope == ApiToken.Scope.WRITE:
        return
    view: Any = (request.parser_context or {}).get("view")
    needed = getattr(view, "token_scope", "")
    for_runs = needed == "run" or (not needed and getattr(view, "action", "") in RUN_ACTIONS)
    if not (token.scope == ApiToken.Scope.RUN and for_runs):
        raise PermissionDenied(_("The scope of this token does not allow this."))
