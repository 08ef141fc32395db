"""Encryption of secrets at rest. The newest key encrypts, any key of the list decrypts, so keys can be rotated."""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.translation import gettext as _

from apps.core.errors import PanelError


class Undecryptable(PanelError):
    """None of our keys opens it: the key was lost or taken out of the list too early."""

    code = "secret_unreadable"
    status = 500


def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


def encrypt(text: str) -> bytes:
    return _box().encrypt(text.encode())


def decrypt(sealed: bytes) -> str:
    try:
        return _box().decrypt(bytes(sealed)).decode()
    except InvalidToken as error:
        raise Undecryptable(_("A stored secret cannot be read with the keys of this panel. Enter it again.")) from error


def renew(sealed: bytes) -> bytes:
    """The same secret under the newest key."""
    try:
        return _box().rotate(bytes(sealed))
    except InvalidToken as error:
        raise Undecryptable(_("A stored secret cannot be read with the keys of this panel. Enter it again.")) from error
