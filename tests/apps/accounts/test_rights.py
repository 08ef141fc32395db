"""One answer to "who may do what", whichever way it is asked and wherever the right comes from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.db.models import Model
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import User
from apps.accounts.rights import ACTIONS, ROLES, actions_on, allowed, can, grant, revoke
from apps.jobs.models import Job
from apps.runs.models import Batch, Node, Run
from apps.spiders.models import Project, Spider
from tests.factories import AdminFactory, GroupFactory, NodeFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db

ANCHORS: dict[str, Callable[[Run], Model]] = {
    "project": lambda run: run.project,
    "spider": lambda run: run.spider,
    "job": lambda run: run.job,  # type: ignore[return-value,dict-item]
}
ORDER = (Project, Spider, Job, Run)
# What a right on the anchor reaches.
REACH = {"project": ORDER, "spider": ORDER[1:], "job": ORDER[2:]}


def objects(run: Run) -> dict[type[Model], Any]:
    return {Project: run.project, Spider: run.spider, Job: run.job, Run: run}


def answers(user: Any, action: str, run: Run) -> set[type[Model]]:
    """The models whose object the user may do it to; both ways of asking must agree (`can()` is `allowed()`)."""
    found = set()
    for model, obj in objects(run).items():
        single = can(user, action, obj)
        assert single == (action in actions_on(user, obj))
        if single:
            found.add(model)
    return found


def give_globally(who: User | Group, action: str, anchor: str) -> None:
    permission = Permission.objects.get(codename=f"{action}_{anchor}")
    (who.user_permissions if isinstance(who, User) else who.permissions).add(permission)


@pytest.fixture
def run() -> Run:
    RunFactory()
    return RunFactory()


@pytest.mark.parametrize("anchor", ANCHORS)
@pytest.mark.parametrize("through", ["user", "group"])
@pytest.mark.parametrize("scope", ["object", "global"])
def test_a_right_reaches_what_hangs_on_its_anchor(run: Run, anchor: str, through: str, scope: str) -> None:
    for action in ACTIONS:
        user, group = UserFactory(), GroupFactory()
        user.groups.add(group)
        who = user if through == "user" else group
        if scope == "object":
            grant(who, action, ANCHORS[anchor](run))
        else:
            give_globally(who, action, anchor)

        assert answers(user, action, run) == set(REACH[anchor])
        assert actions_on(user, run) == {action}
        assert allowed(user, action, Run).count() == (1 if scope == "object" else 2)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_a_right_reaches_what_hangs_on_a_job(run: Run, anchor: str, now: datetime) -> None:
    batch = Batch.objects.create(
        project=run.project, job=run.job, kind="inputs", trigger="inputs", actor="x", created_at=now
    )
    user = UserFactory()
    grant(user, "run", ANCHORS[anchor](run))

    assert can(user, "run", batch)
    assert actions_on(user, batch) == {"run"}
    batch.job = None
    assert actions_on(user, batch) == ({"run"} if anchor == "project" else set())


def test_a_stranger_may_do_nothing(run: Run) -> None:
    assert all(answers(UserFactory(), action, run) == set() for action in ACTIONS)


@pytest.mark.parametrize("who", ["inactive superuser", "inactive holder", "inactive global holder", "anonymous"])
def test_who_is_not_active_may_do_nothing(run: Run, who: str) -> None:
    user: Any = AdminFactory(is_active=False) if who == "inactive superuser" else UserFactory(is_active=False)
    if who == "inactive holder":
        grant(user, "owner", run.project)
    elif who == "inactive global holder":
        give_globally(user, "view", "spider")
    elif who == "anonymous":
        user = AnonymousUser()

    assert all(answers(user, action, run) == set() for action in ACTIONS)


def test_a_superuser_may_do_everything(run: Run) -> None:
    user = AdminFactory()

    assert all(answers(user, action, run) == set(ORDER) for action in ACTIONS)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_a_bundle_that_can_be_given_and_taken(run: Run, role: str) -> None:
    user = UserFactory()
    grant(user, role, run.spider)
    grant(user, role, run.spider)
    assert actions_on(user, run) == set(ROLES[role])

    revoke(user, role, run.spider)
    revoke(user, role, run.spider)
    assert actions_on(user, run) == frozenset()


def test_roles_grow_from_viewer_to_owner() -> None:
    ladder = [set(ROLES[name]) for name in ("viewer", "runner", "operator", "developer", "owner")]

    assert all(lower < higher for lower, higher in pairwise(ladder))
    assert set(ROLES["auditor"]).isdisjoint({"run", "stop", "edit", "schedule", "manage"})


@pytest.mark.parametrize("model", ORDER)
def test_one_statement_is_enough(
    run: Run, model: type[Model], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    user, obj = UserFactory(), objects(run)[model]
    grant(user, "viewer", run.project)
    with django_assert_num_queries(1):
        list(allowed(user, "view", model))
    with django_assert_num_queries(1):
        can(user, "view", obj)
    with django_assert_num_queries(1):
        actions_on(user, obj)


def test_an_object_is_listed_once_however_often_it_is_granted(run: Run) -> None:
    user, group = UserFactory(), GroupFactory()
    user.groups.add(group, GroupFactory())
    for who in (user, group):
        for anchor in ANCHORS.values():
            grant(who, "viewer", anchor(run))
    give_globally(user, "view", "project")

    assert allowed(user, "view", Run).count() == 2


def test_rights_die_with_their_object(run: Run) -> None:
    user = UserFactory()
    job = run.job
    assert job is not None
    grant(user, "owner", job)
    pk = job.pk
    job.delete()
    again = Job(
        pk=pk, project=run.project, spider=run.spider, name="new", created_at=run.queued_at, updated_at=run.queued_at
    )
    again.save(force_insert=True)

    assert not can(user, "view", again)


def test_a_right_of_the_same_name_on_another_model_does_not_count(run: Run) -> None:
    user = UserFactory()
    user.user_permissions.add(Permission.objects.get(codename="view_user"))

    assert answers(user, "view", run) == set()


def test_rights_hang_on_projects_spiders_and_jobs_only(run: Run) -> None:
    with pytest.raises(TypeError):
        grant(UserFactory(), "view", run)
    with pytest.raises(TypeError):
        allowed(UserFactory(), "view", Node)
    with pytest.raises(TypeError):
        can(UserFactory(), "view", NodeFactory())


def test_an_unknown_action_or_role_is_a_programming_error(run: Run) -> None:
    with pytest.raises(ValueError, match="no such action"):
        can(AdminFactory(), "fly", run)
    with pytest.raises(KeyError):
        grant(UserFactory(), "pilot", run.project)
