"""The admin: every list and form opens, rights are asked for, writing goes through the services."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from unfold.admin import ModelAdmin

import clawpanel.urls  # noqa: F401 (registers the admins)
from apps.accounts.models import ApiToken
from apps.accounts.rights import can, grant
from apps.accounts.services import create_token
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.runs.states import State
from tests.apps.panel.conftest import SignIn
from tests.factories import JobFactory, NodeFactory, ProjectFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

MODELS = sorted(model._meta.label_lower for model in admin.site._registry)
SCHEMA = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "minLength": 2}}}
LIMITS = {"memory_mb": "256", "cpus": "1", "timeout_seconds": "60", "grace_seconds": "5", "priority": "5", "env": ""}


def address(label: str, view: str, *args: object) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_{view}", args=args)


def test_every_model_wears_our_clothes() -> None:
    strangers = [model._meta.label for model, own in admin.site._registry.items() if not isinstance(own, ModelAdmin)]
    assert not strangers


@pytest.mark.parametrize("label", MODELS)
def test_every_list_opens_and_takes_a_search(admin_page: Client, label: str) -> None:
    NodeFactory()
    RunFactory(state=State.FAILED, reason="exit_nonzero", detail={"exit_code": 3})
    assert admin_page.get(address(label, "changelist")).status_code == 200
    assert admin_page.get(address(label, "changelist") + "?q=1").status_code == 200


@pytest.mark.parametrize("label", MODELS)
def test_every_form_opens(admin_page: Client, label: str) -> None:
    NodeFactory()
    run = RunFactory()
    create_token(user=UserFactory(), name="laptop", now=datetime.now(UTC))
    thing = run if label == "runs.run" else apps.get_model(label)._default_manager.first()
    if thing is not None:
        assert admin_page.get(address(label, "change", thing.pk)).status_code == 200
    added = admin_page.get(address(label, "add"))
    assert added.status_code in (200, 403)


def test_the_start_page_opens_and_leads_everywhere(admin_page: Client) -> None:
    text = admin_page.get("/admin/").content.decode()
    for label in ("runs.run", "jobs.job", "accounts.user", "django_celery_beat.periodictask"):
        assert address(label, "changelist") in text


def test_staff_see_only_what_they_have_rights_on(sign_in: SignIn) -> None:
    mine, foreign = JobFactory(), JobFactory()
    staff = UserFactory(is_staff=True)
    grant(staff, "viewer", mine)
    client = sign_in(staff)
    text = client.get(address("jobs.job", "changelist")).content.decode()
    assert mine.name in text
    assert foreign.name not in text
    assert client.get(address("jobs.job", "change", foreign.pk)).status_code == 404
    assert client.get(address("jobs.job", "change", mine.pk)).status_code == 403


@pytest.mark.parametrize("label", ["accounts.user", "auth.group", "accounts.apitoken", "runs.node"])
def test_what_concerns_the_whole_panel_is_for_administrators(sign_in: SignIn, label: str) -> None:
    client = sign_in(UserFactory(is_staff=True))
    assert client.get(address(label, "changelist")).status_code == 403


def test_a_job_is_made_and_changed_with_the_form_of_its_schema(admin_page: Client) -> None:
    spider = SpiderFactory(name="weather", version__parameter_schema=SCHEMA)
    assert "weather" in admin_page.get(address("jobs.job", "add")).content.decode()
    assert 'name="p.city"' in admin_page.get(address("jobs.job", "add") + "?spider=weather").content.decode()
    typed = {"spider": "weather", "name": "Bonn", **LIMITS}
    refused = admin_page.post(address("jobs.job", "add"), {**typed, "p.city": "B"})
    assert refused.status_code == 422
    admin_page.post(address("jobs.job", "add"), {**typed, "p.city": "Bonn"})
    job = Job.objects.get(spider=spider)
    assert job.parameters == {"city": "Bonn"}
    admin_page.post(address("jobs.job", "change", job.pk), {**typed, "p.city": "Ulm"})
    job.refresh_from_db()
    assert job.parameters == {"city": "Ulm"}


def test_runs_are_stopped_and_run_again_by_id(admin_page: Client) -> None:
    queued, over = RunFactory(state=State.QUEUED), RunFactory(state=State.FAILED)
    chosen = {"_selected_action": [queued.pk, over.pk]}
    stopped = admin_page.post(address("runs.run", "changelist"), {"action": "stop", **chosen}, follow=True)
    queued.refresh_from_db()
    assert queued.state == State.CANCELED
    assert f"Asked to stop: #{queued.pk}." in stopped.content.decode()
    assert "is over already" in stopped.content.decode()
    admin_page.post(address("runs.run", "changelist"), {"action": "run_again", "_selected_action": [over.pk]})
    assert Run.objects.filter(job=over.job, state=State.QUEUED).count() == 1


def test_a_viewer_stops_nothing_in_the_admin_either(sign_in: SignIn) -> None:
    run, staff = RunFactory(state=State.QUEUED), UserFactory(is_staff=True)
    grant(staff, "viewer", run.job)
    chosen = {"action": "stop", "_selected_action": [run.pk]}
    answer = sign_in(staff).post(address("runs.run", "changelist"), chosen, follow=True)
    run.refresh_from_db()
    assert run.state == State.QUEUED
    assert f"You may not do this with run {run.pk}." in answer.content.decode()


def test_the_run_list_counts_nothing(admin_page: Client) -> None:
    """BC-55."""
    RunFactory()
    with CaptureQueriesContext(connection) as captured:
        admin_page.get(address("runs.run", "changelist"))
    assert not [
        query["sql"] for query in captured.captured_queries if 'COUNT(*) AS "__count" FROM "runs' in query["sql"]
    ]


def test_a_token_is_revoked_and_never_shown(admin_page: Client) -> None:
    token, text = create_token(user=UserFactory(), name="laptop", now=datetime.now(UTC))
    assert text not in admin_page.get(address("accounts.apitoken", "change", token.pk)).content.decode()
    assert admin_page.get(address("accounts.apitoken", "add")).status_code == 403
    admin_page.post(address("accounts.apitoken", "delete", token.pk), {"post": "yes"})
    assert not ApiToken.objects.exists()


def test_rights_are_granted_by_who_manages(sign_in: SignIn, admin_page: Client) -> None:
    project, ada, bob = ProjectFactory(), UserFactory(is_staff=True), UserFactory()
    page = address("spiders.project", "permissions_manage_user", project.pk, bob.pk)
    assert sign_in(ada).post(page, {"permissions": ["view_project"]}).status_code == 404
    grant(ada, "owner", project)
    assert sign_in(ada).get(address("spiders.project", "permissions", project.pk)).status_code == 200
    sign_in(ada).post(page, {"permissions": ["view_project", "run_project"]})
    assert can(bob, "view", project)
    assert can(bob, "run", project)
    assert not can(bob, "edit", project)


def test_who_manages_one_job_does_not_manage_another_by_the_spelling_of_its_number(sign_in: SignIn) -> None:
    managed, staff = JobFactory(), UserFactory(is_staff=True)
    # Its number begins with all digits that were once looked at, and goes on.
    other = JobFactory(pk=managed.pk * 10 + 1)
    grant(staff, "owner", managed)
    grant(staff, "view", other)
    spelled = f"{managed.pk:018d}1"
    client = sign_in(staff)
    assert client.get(address("jobs.job", "permissions", spelled)).status_code == 404
    page = address("jobs.job", "permissions_manage_user", spelled, staff.pk)
    assert client.post(page, {"permissions": ["view_job", "edit_job"]}).status_code == 404
    assert not can(staff, "edit", other)


def test_what_a_run_made_is_for_those_who_may_see_its_data(sign_in: SignIn) -> None:
    run, staff = RunFactory(state=State.SUCCEEDED, output={"report": "all our prices"}), UserFactory(is_staff=True)
    grant(staff, "view", run.job)
    page = address("runs.run", "change", run.pk)
    assert "all our prices" not in sign_in(staff).get(page).content.decode()
    grant(staff, "view_data", run.job)
    assert "all our prices" in sign_in(staff).get(page).content.decode()


def test_a_list_is_searched_by_its_own_filters_only(sign_in: SignIn) -> None:
    run, staff = RunFactory(state=State.SUCCEEDED, output={"report": "secret"}), UserFactory(is_staff=True)
    grant(staff, "view", run.job)
    client, page = sign_in(staff), address("runs.run", "changelist")
    assert client.get(page + "?state__exact=succeeded").status_code == 200
    for asked in ("output__report__startswith=s", "state__regex=(", "state__exact=%00", "requested_by__id=1"):
        assert client.get(f"{page}?{asked}").status_code == 400, asked
