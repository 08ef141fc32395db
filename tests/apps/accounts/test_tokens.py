"""API tokens: made once, kept as a hash, refused when they must be."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from apps.accounts.authentication import ApiTokenAuthentication
from apps.accounts.models import ApiToken, User
from apps.accounts.services import TokenNameTaken, create_token, revoke_token
from apps.core.errors import Invalid
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


class LookView(APIView):
    pass


class RunView(APIView):
    token_scope = "run"


def ask(text: str, method: str = "get", view: type[APIView] = LookView, action: str = "") -> Any:
    request = getattr(APIRequestFactory(), method)("/", HTTP_AUTHORIZATION=f"Token {text}")
    seen = view()
    seen.action = action  # type: ignore[attr-defined]  # as viewsets have it
    return ApiTokenAuthentication().authenticate(Request(request, parser_context={"view": seen}))


@pytest.fixture
def user() -> User:
    return UserFactory()


def test_a_token_lets_its_user_in_and_is_kept_as_a_hash_only(user: User, now: datetime) -> None:
    token, text = create_token(user=user, name="ci", now=now)

    assert ask(text) == (user, token)
    assert text.startswith("claw_")
    stored = ApiToken.objects.values().get()
    assert text not in str(stored)
    assert text[20:] not in str(stored)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "claw_",
        "x" * 64,
        "claw_" + "0" * 64,
        "claw_\0" + "0" * 64,
        "claw_\xff" + "0" * 40,
        "a b",
        "ü" * 30,
        "x" * 5000,
    ],
)
def test_what_is_no_token_is_refused(text: str, user: User, now: datetime) -> None:
    create_token(user=user, name="ci", now=now)

    with pytest.raises(AuthenticationFailed):
        ask(text)


def test_a_token_that_differs_in_its_end_is_refused(user: User, now: datetime) -> None:
    _token, text = create_token(user=user, name="ci", now=now)

    with pytest.raises(AuthenticationFailed):
        ask(text[:-1] + ("0" if text[-1] != "0" else "1"))


def test_an_expired_token_is_refused_but_still_listed(user: User, now: datetime) -> None:
    _token, text = create_token(user=user, name="ci", now=now - timedelta(days=2), ttl=timedelta(days=1))

    with pytest.raises(AuthenticationFailed, match="expired"):
        ask(text)
    assert ApiToken.objects.exists()


def test_a_token_may_never_expire(user: User, now: datetime) -> None:
    token, text = create_token(user=user, name="ci", now=now, ttl=None)

    assert token.expiry is None
    assert ask(text)


def test_tokens_of_a_deactivated_user_are_refused(user: User, now: datetime) -> None:
    _token, text = create_token(user=user, name="ci", now=now)
    User.objects.filter(pk=user.pk).update(is_active=False)

    with pytest.raises(AuthenticationFailed):
        ask(text)


def test_a_revoked_token_is_refused(user: User, now: datetime) -> None:
    token, text = create_token(user=user, name="ci", now=now)
    revoke_token(token=token)

    with pytest.raises(AuthenticationFailed):
        ask(text)


def test_another_scheme_is_left_to_others() -> None:
    request = APIRequestFactory().get("/", HTTP_AUTHORIZATION="Bearer x")

    assert ApiTokenAuthentication().authenticate(Request(request)) is None


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_scope_read_may_only_look(user: User, now: datetime, method: str) -> None:
    _token, text = create_token(user=user, name="ci", now=now, scope="read")

    assert ask(text)
    for view, action in ((LookView, ""), (RunView, ""), (LookView, "run")):
        with pytest.raises(PermissionDenied):
            ask(text, method, view, action)


def test_scope_run_may_start_and_stop_but_not_change(user: User, now: datetime) -> None:
    _token, text = create_token(user=user, name="ci", now=now, scope="run")

    assert ask(text, "post", RunView)
    assert ask(text, "post", LookView, "run")
    assert ask(text, "post", LookView, "stop")
    for action in ("create", "update", "destroy", ""):
        with pytest.raises(PermissionDenied):
            ask(text, "post", LookView, action)


def test_use_is_noted_at_most_once_a_minute(user: User, now: datetime) -> None:
    token, text = create_token(user=user, name="ci", now=now)
    ask(text)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    ask(text)
    token.refresh_from_db()
    assert token.last_used_at == first

    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    ask(text)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first


def test_a_name_is_unique_for_a_user(user: User, now: datetime) -> None:
    create_token(user=user, name="ci", now=now)
    with pytest.raises(TokenNameTaken, match="already has a token named “ci”"):
        create_token(user=user, name=" ci ", now=now)

    create_token(user=UserFactory(), name="ci", now=now)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"scope": "root"}, "scope"),
        ({"ttl": timedelta(0)}, "ttl"),
        ({"ttl": timedelta(days=9999)}, "ttl"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(user: User, now: datetime, changes: Any, field: str) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_token(**{"user": user, "name": "ci", "now": now, **changes})

    assert set(excinfo.value.fields) == {field}


def test_the_command_prints_the_token_alone_on_its_last_line(user: User) -> None:
    out, err = StringIO(), StringIO()
    call_command("create_token", user.username, name="ci", scope="read", stdout=out, stderr=err)

    assert ask(out.getvalue().splitlines()[-1])[0] == user
    assert out.getvalue().count("\n") == 1


def test_the_command_refuses_with_one_sentence(user: User) -> None:
    with pytest.raises(CommandError, match="no user named nobody"):
        call_command("create_token", "nobody", name="ci")
    call_command("create_token", user.username, name="ci", stdout=StringIO(), stderr=StringIO())
    with pytest.raises(CommandError, match="already has a token"):
        call_command("create_token", user.username, name="ci")
    with pytest.raises(CommandError):
        call_command("create_token", user.username, name="ci2", days=-1)
    with pytest.raises(CommandError):
        call_command("create_token", user.username, name="ci2", days=10**12)
