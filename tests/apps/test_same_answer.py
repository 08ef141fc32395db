"""However a right is held, lists, single pages, API, downloads and admin agree about it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.rights import can, grant
from apps.runs.models import Run
from apps.runs.states import State
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import GroupFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db

RIGHTS = ("view", "view_log", "view_data", "export_data")
BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


def nothing(user: User, run: Run) -> None:
    """The control."""


def the_object(user: User, run: Run) -> None:
    for right in RIGHTS:
        grant(user, right, run.job)


def a_group_on_the_project(user: User, run: Run) -> None:
    group: Group = GroupFactory()
    user.groups.add(group)
    for right in RIGHTS:
        grant(group, right, run.project)


def the_global_permission(user: User, run: Run) -> None:
    codenames = [f"{right}_spider" for right in RIGHTS]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames, content_type__app_label="spiders"))


def a_group_with_the_global_permission(user: User, run: Run) -> None:
    group: Group = GroupFactory()
    user.groups.add(group)
    codenames = [f"{right}_project" for right in RIGHTS]
    group.permissions.set(Permission.objects.filter(codename__in=codenames, content_type__app_label="spiders"))


def a_superuser(user: User, run: Run) -> None:
    user.is_superuser = True
    user.save()


def an_inactive_superuser(user: User, run: Run) -> None:
    user.is_superuser, user.is_active = True, False
    user.save()


HOLDERS = [
    (nothing, False),
    (the_object, True),
    (a_group_on_the_project, True),
    (the_global_permission, True),
    (a_group_with_the_global_permission, True),
    (a_superuser, True),
    (an_inactive_superuser, False),
]


@pytest.mark.parametrize(("holder", "may"), HOLDERS, ids=lambda part: getattr(part, "__name__", ""))
def test_all_doors_give_the_same_answer(holder: Any, may: bool) -> None:
    run = RunFactory(state=State.SUCCEEDED)
    store_rows(run, [row(1)])
    store_items(run, [{"n": 1}])
    user = UserFactory(is_staff=True)
    holder(user, run)
    client = Client()
    client.force_login(user, backend=BACKEND)

    def opens(address: str) -> bool:
        return client.get(address).status_code == 200

    def lists(address: str, what: str) -> bool:
        answer = client.get(address)
        return answer.status_code == 200 and what in answer.content.decode()

    fresh = User.objects.get(pk=user.pk)
    answers = {
        "can": all(can(fresh, right, run) for right in RIGHTS),
        "list": lists("/runs/", f'href="/runs/{run.pk}/'),
        "page": opens(f"/runs/{run.pk}/"),
        "log": opens(f"/runs/{run.pk}/log/"),
        "download": opens(f"/runs/{run.pk}/items.csv"),
        "API list": lists("/api/v1/runs/", f'"id":{run.pk},'),
        "API": opens(f"/api/v1/runs/{run.pk}/"),
        "API log": opens(f"/api/v1/runs/{run.pk}/log/"),
        "API download": opens(f"/api/v1/runs/{run.pk}/items.csv"),
        "admin list": lists(reverse("admin:runs_run_changelist"), reverse("admin:runs_run_change", args=[run.pk])),
        "admin page": opens(reverse("admin:runs_run_change", args=[run.pk])),
    }
    assert answers == dict.fromkeys(answers, may)
