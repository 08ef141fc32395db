"""Tokens: making, using and revoking them; and what a person prefers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from knox.models import get_digest_token

from apps.accounts.models import ApiToken, User
from apps.core.errors import Conflict, Invalid

DEFAULT_TTL = timedelta(days=90)
LONGEST_TTL = timedelta(days=3650)
USE_NOTED_EVERY = timedelta(minutes=1)
_KEY_LENGTH = 15  # knox looks tokens up by this many characters; kept for its own admin and list


class TokenNameTaken(Conflict):
    code = "token_name_taken"


def create_token(
    *,
    user: User,
    name: str,
    scope: str = ApiToken.Scope.WRITE,
    now: datetime,
    ttl: timedelta | None = DEFAULT_TTL,
) -> tuple[ApiToken, str]:
    """A new token and its text, which is not kept: it can be shown this once only. `ttl=None` never expires."""
    name = name.strip()
    faults: dict[str, list[str]] = {}
    if not name or len(name) > 100 or not name.isprintable():
        faults["name"] = [_("Give the token a name of 1 to 100 printable characters.")]
    if scope not in ApiToken.Scope.values:
        faults["scope"] = [_("The scope must be one of: %(scopes)s.") % {"scopes": ", ".join(ApiToken.Scope.values)}]
    if ttl is not None and not timedelta(0) < ttl <= LONGEST_TTL:
        faults["ttl"] = [_("A token lives longer than no time and at most ten years.")]
    if not user.is_active:
        faults["user"] = [_("%(user)s is deactivated and cannot have tokens.") % {"user": user.get_username()}]
    if faults:
        raise Invalid(next(iter(faults.values()))[0], fields=faults)
    digest, text = get_digest_token()  # type: ignore[no-untyped-call]
    token = ApiToken(
        digest=digest,
        token_key=text[:_KEY_LENGTH],
        user=user,
        name=name,
        scope=scope,
        expiry=None if ttl is None else now + ttl,
    )
    try:
        with transaction.atomic():
            token.save(force_insert=True)
    except IntegrityError as error:
        message = _("%(user)s already has a token named “%(name)s”. Revoke it or choose another name.") % {
            "user": user.get_username(),
            "name": name,
        }
        raise TokenNameTaken(message, fields={"name": [message]}) from error
    return token, text


def note_use(*, token: ApiToken, now: datetime) -> None:
    """Remember that the token was used, at most once a minute: a busy program must not write on every call."""
    before = now - USE_NOTED_EVERY
    if token.last_used_at is None or token.last_used_at < before:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=before)
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def revoke_token(*, token: ApiToken) -> None:
    token.delete()


def keep_preferences(*, user: User, language: str = "", theme: str = "") -> None:
    """Remember the choices that are given; an empty one stays as it is."""
    wanted = {key: value for key, value in (("language", language), ("theme", theme)) if value}
    User.objects.filter(pk=user.pk).update(**wanted)
