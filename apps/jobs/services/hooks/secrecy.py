"""What proves that a caller may call: the secret part of the address, and the signature of the body."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping

from apps.core.crypto import Undecryptable, decrypt, encrypt
from apps.jobs.models import Hook

logger = logging.getLogger(__name__)

_PREFIX_LENGTH = 8
_SIGNATURES = ("X-Signature-256", "X-Hub-Signature-256")
_SCHEME = "sha256="


def digest_of(*, token: str) -> str:
    # The token is 256 random bits: there is nothing to guess that a slow hash would protect.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def give_secrets(*, hook: Hook) -> tuple[str, str]:
    """A new token and, for signed bodies, a new key; what was there before opens nothing any more."""
    token = secrets.token_urlsafe(32)
    key = secrets.token_hex(32) if hook.kind == Hook.Kind.HMAC else ""
    hook.token_digest, hook.token_prefix = digest_of(token=token), token[:_PREFIX_LENGTH]
    hook.sealed_key = encrypt(key) if key else b""
    return token, key


def is_signed(*, hook: Hook, body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether one of the headers is the signature of the body; an address alone needs none."""
    if hook.kind != Hook.Kind.HMAC:
        return True
    try:
        key = decrypt(bytes(hook.sealed_key))
    except Undecryptable:
        logger.exception("the key of webhook %s cannot be read: its callers are turned away", hook.pk)
        return False
    wanted = (_SCHEME + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()).encode()
    given = [headers.get(name, "").strip().lower().encode("utf-8", "surrogatepass") for name in _SIGNATURES]
    # All are compared, whichever fits: the time taken tells nothing.
    return any([hmac.compare_digest(wanted, each) for each in given])  # noqa: C419
