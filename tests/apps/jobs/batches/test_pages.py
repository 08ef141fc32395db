"""The pages of batches and of what a job follows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.jobs.models import Dependency, Job
from apps.jobs.services.batches import settle
from apps.runs.models import Batch
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of, start, states
from tests.factories import AdminFactory, JobFactory, UserFactory

pytestmark = pytest.mark.django_db


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.fixture
def admin() -> Client:
    return client_of(AdminFactory(username="ada"))


def chain(now: datetime) -> tuple[list[Job], Batch]:
    jobs = jobs_of("fetch", "clean", "report")
    after(jobs[1], jobs[0])
    after(jobs[2], jobs[1], condition="always")
    return jobs, start(jobs[0], now)


# -- batches --------------------------------------------------------------------------------------------------------


def test_the_page_draws_every_job_with_its_state_and_leads_to_its_run(admin: Client, now: datetime) -> None:
    jobs, batch = chain(now)
    end(batch, jobs[0], "failed", now, reason="exit_nonzero", detail={"exit_code": 3})

    page = admin.get(reverse("batches:detail", args=(batch.pk,))).content.decode()

    for job, word in zip(jobs, ("Failed", "Skipped", "Queued"), strict=True):
        run = run_of(batch, job)
        assert f'<a id="node-{job.pk}" href="/runs/{run.pk}/">' in page
        assert f"<title>{job.name} · {word} · #{run.pk}" in page
    assert "It ended with exit code 3." in page
    assert "3 of 3" not in page
    assert "2 of 3" in page


def test_it_is_asked_for_again_while_it_goes_on_only(admin: Client, now: datetime) -> None:
    jobs, batch = chain(now)
    live = reverse("batches:live", args=(batch.pk,))
    assert f'hx-get="{live}' in admin.get(live).content.decode()

    for job in jobs:
        end(batch, job, "succeeded", now)

    page = admin.get(live).content.decode()
    assert "hx-get" not in page
    assert "Stop batch" not in page
    assert "Run again from the failed one" not in page


def test_stop_and_again(admin: Client, now: datetime) -> None:
    jobs, batch = chain(now)
    page = reverse("batches:detail", args=(batch.pk,))
    assert "Stop batch" in admin.get(page).content.decode()

    assert admin.post(reverse("batches:stop", args=(batch.pk,))).headers["Location"] == page
    assert set(states(batch).values()) == {"canceled"}
    settle(batch_id=batch.pk, now=now)
    assert "Run again from the failed one" in admin.get(page).content.decode()
    answer = admin.post(reverse("batches:again", args=(batch.pk,)))

    new = Batch.objects.get(origin=batch)
    assert answer.headers["Location"] == reverse("batches:detail", args=(new.pk,))
    assert f"#{batch.pk}</a>" in admin.get(answer.headers["Location"]).content.decode()
    assert f"#{new.pk}</a>" in admin.get(page).content.decode()
    assert run_of(new, jobs[0]).state == "queued"


def test_a_refusal_is_told_on_the_page(admin: Client, now: datetime) -> None:
    _jobs, batch = chain(now)

    answer = admin.post(reverse("batches:again", args=(batch.pk,)), follow=True, headers={"referer": "/batches/"})

    assert f"Batch {batch.pk} goes on still." in answer.content.decode()


def test_jobs_that_may_not_be_seen_have_no_name_and_no_way_to_their_run(now: datetime) -> None:
    jobs, batch = chain(now)
    user: User = UserFactory()
    grant(user, "viewer", jobs[0])

    page = client_of(user).get(reverse("batches:detail", args=(batch.pk,))).content.decode()

    assert "fetch" in page
    assert "clean" not in page
    assert f"/runs/{run_of(batch, jobs[1]).pk}/" not in page
    assert f"#{jobs[1].pk} · Waiting" in page


def test_a_viewer_has_no_buttons(now: datetime) -> None:
    jobs, batch = chain(now)
    user: User = UserFactory()
    grant(user, "viewer", jobs[0].project)

    page = client_of(user).get(reverse("batches:detail", args=(batch.pk,))).content.decode()

    assert "clean" in page
    assert "Stop batch" not in page


def test_names_from_outside_do_no_harm(admin: Client, now: datetime) -> None:
    a, b = jobs_of("</title><script>alert(1)</script>", "\u202e名" * 40)
    after(b, a)
    batch = start(a, now)

    page = admin.get(reverse("batches:detail", args=(batch.pk,))).content.decode()

    assert "<script>alert" not in page


def test_the_list_holds_what_may_be_seen_newest_first(admin: Client, now: datetime) -> None:
    _jobs, first = chain(now)
    _others, second = chain(now)
    stranger = client_of(UserFactory())

    page = admin.get(reverse("batches:list")).content.decode()
    only = admin.get(reverse("batches:list"), {"job": first.job_id}).content.decode()

    assert page.index(f"/batches/{second.pk}/") < page.index(f"/batches/{first.pk}/")
    assert f"/batches/{second.pk}/" not in only
    assert f"/batches/{first.pk}/" in only
    assert "/batches/1" not in stranger.get(reverse("batches:list")).content.decode()
    for nonsense in ("x", "9" * 40, "\0", "-1"):
        assert admin.get(reverse("batches:list"), {"after": nonsense, "job": nonsense}).status_code == 200


def test_a_list_costs_as_many_queries_as_its_first_row(
    admin: Client, now: datetime, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        chain(now)

    with django_assert_max_num_queries(14):
        admin.get(reverse("batches:list"))


def test_the_page_of_a_run_leads_to_its_batch(admin: Client, now: datetime) -> None:
    jobs, batch = chain(now)
    run = run_of(batch, jobs[1])
    only_the_child: User = UserFactory()
    grant(only_the_child, "viewer", jobs[1])

    assert f'href="/batches/{batch.pk}/"' in admin.get(f"/runs/{run.pk}/").content.decode()
    page = client_of(only_the_child).get(f"/runs/{run.pk}/").content.decode()
    assert f'href="/batches/{batch.pk}/"' not in page


# -- what a job follows ----------------------------------------------------------------------------------------------


def test_the_page_of_a_job_shows_both_directions(admin: Client, now: datetime) -> None:
    jobs, _batch = chain(now)

    page = admin.get(f"/jobs/{jobs[1].pk}/").content.decode()

    assert f'<a href="/jobs/{jobs[0].pk}/">fetch</a> (when it succeeds)' in page
    assert f'<a href="/jobs/{jobs[2].pk}/">report</a> (in any case)' in page


def test_dependencies_are_chosen_on_a_page(admin: Client) -> None:
    a, b, c = jobs_of("a", "b", "c")
    after(c, a)
    path = reverse("jobs:dependencies", args=(c.pk,))
    assert f'<option value="{a.pk}" selected>a</option>' in admin.get(path).content.decode()

    sent = {"upstream": [a.pk, b.pk, ""], "condition": ["failure", "always", "success"], "join": "any"}
    answer = admin.post(path, sent)

    assert answer.headers["Location"] == f"/jobs/{c.pk}/"
    found = set(Dependency.objects.filter(job=c).values_list("upstream__name", "condition"))
    assert found == {("a", "failure"), ("b", "always")}
    c.refresh_from_db()
    assert c.join == "any"


def test_another_row_keeps_what_was_typed_and_saves_nothing(admin: Client) -> None:
    a, b = jobs_of("a", "b")
    path = reverse("jobs:dependencies", args=(b.pk,))

    page = admin.post(path, {"upstream": [a.pk], "condition": ["failure"], "join": "any", "add": "1"}).content.decode()

    assert page.count('name="upstream"') == 2
    assert f'<option value="{a.pk}" selected>a</option>' in page
    assert '<option value="failure" selected>' in page
    assert not Dependency.objects.exists()


def test_each_fault_stands_at_its_row(admin: Client) -> None:
    a, b = jobs_of("a", "b")
    after(a, b)
    path = reverse("jobs:dependencies", args=(b.pk,))

    sent = {"upstream": ["", a.pk, "x", JobFactory().pk], "condition": ["success"] * 4, "join": "all"}
    answer = admin.post(path, sent)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "The jobs would go round in a circle: b → a → b." in page
    assert "There is no such job." in page
    assert "belong to the same project" in page
    assert 'aria-describedby="wrong-2"' in page
    assert not Dependency.objects.filter(job=b).exists()


def test_only_who_may_schedule_the_job_reaches_it(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    viewer, operator = UserFactory(), UserFactory()
    grant(viewer, "viewer", b.project)
    grant(operator, "operator", b)
    path = reverse("jobs:dependencies", args=(b.pk,))

    assert client_of(viewer).get(path).status_code == 404
    page = client_of(operator).get(path).content.decode()
    assert f'value="{a.pk}"' not in page
    answer = client_of(operator).post(path, {"upstream": [a.pk], "condition": ["success"], "join": "all"})
    assert "There is no such job." in answer.content.decode()


# -- admin ----------------------------------------------------------------------------------------------------------


def test_the_admin_shows_batches_and_stops_them(admin: Client, now: datetime) -> None:
    jobs, batch = chain(now)
    assert "fetch" in admin.get("/admin/runs/batch/").content.decode()
    assert admin.get(f"/admin/runs/batch/{batch.pk}/change/").status_code == 200
    assert "clean" in admin.get("/admin/jobs/dependency/").content.decode()

    admin.post("/admin/runs/batch/", {"action": "stop", "_selected_action": [batch.pk]})

    assert run_of(batch, jobs[0]).state == "canceled"
