"""A signed-in browser for page tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from apps.accounts.models import User
from tests.factories import AdminFactory

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
SignIn = Callable[[User], Client]


@pytest.fixture
def sign_in(db: None) -> SignIn:
    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user, backend=BACKEND)
        return client

    return sign_in


@pytest.fixture
def admin_page(sign_in: SignIn) -> Client:
    return sign_in(AdminFactory())
