"""Secrets at rest."""

from __future__ import annotations

from datetime import datetime

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from apps.core.crypto import Undecryptable, decrypt, encrypt, renew
from apps.core.errors import NotFound
from apps.spiders.models import Secret
from apps.spiders.secrets import keep, reveal
from tests.factories import ProjectFactory, UserFactory


@pytest.mark.django_db
def test_a_secret_comes_back_and_is_not_stored_in_the_clear(now: datetime) -> None:
    secret = keep(project=ProjectFactory(), label="key", value="密码 hunter2", by=UserFactory(), now=now)

    assert reveal({"key": secret.pk}) == {"key": "密码 hunter2"}
    assert b"hunter2" not in bytes(Secret.objects.get().ciphertext)
    assert "hunter2" not in f"{secret} {secret!r}"


@pytest.mark.django_db
def test_a_secret_that_is_gone_is_named() -> None:
    with pytest.raises(NotFound, match="key"):
        reveal({"key": 10**9})
    assert reveal({}) == {}


def test_keys_can_be_rotated(settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    sealed = encrypt("hunter2")
    settings.ENCRYPTION_KEYS = [new, old]
    assert decrypt(sealed) == "hunter2"
    renewed = renew(sealed)

    settings.ENCRYPTION_KEYS = [new]
    assert decrypt(renewed) == "hunter2"
    for act in (decrypt, renew):
        with pytest.raises(Undecryptable):
            act(sealed)


def test_a_damaged_secret_is_a_clear_refusal() -> None:
    for sealed in (b"", b"nonsense", encrypt("x")[:-1], b"\xff\x00"):
        with pytest.raises(Undecryptable):
            decrypt(sealed)
