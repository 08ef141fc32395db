"""The list of hosts that jobs may call is kept by administrators."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.jobs.models import CallHost
from tests.factories import AdminFactory, UserFactory

pytestmark = pytest.mark.django_db
ADD = "/admin/jobs/callhost/add/"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(AdminFactory(), backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("API.Example.com.", "api.example.com"),
        ("*.example.com", "*.example.com"),
        ("api.example.com:8443", "api.example.com:8443"),
        ("10.1.2.0/24", "10.1.2.0/24"),
        ("10.1.2.3", "10.1.2.3"),
        ("[fd00::1]", "fd00::1"),
    ],
)
def test_a_host_is_kept_as_it_is_compared(admin: Client, typed: str, kept: str) -> None:
    assert admin.post(ADD, {"host": typed, "note": ""}).status_code == 302
    assert CallHost.objects.get().host == kept


@pytest.mark.parametrize(
    "typed",
    [
        "https://api.example.com/",
        "api.example.com/x",
        "a b.com",
        "*",
        "*.com:x",
        "localhost",
        "127.1",
        "a:0",
        "例え.jp",
    ],
)
def test_what_is_no_host_is_refused(admin: Client, typed: str) -> None:
    answer = admin.post(ADD, {"host": typed, "note": ""})
    assert answer.status_code == 200
    assert not CallHost.objects.exists()


def test_staff_who_are_no_superusers_do_not_see_it(client: Client) -> None:
    staff = UserFactory(is_staff=True)
    client.force_login(staff, backend="allauth.account.auth_backends.AuthenticationBackend")
    assert client.get(ADD).status_code in (302, 403)
