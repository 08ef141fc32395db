"""The admin in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.rights import can
from apps.core.actors import person
from apps.jobs.services.firing import look
from apps.jobs.services.schedules import create_schedule
from apps.runs.states import State
from tests.browser.conftest import OpenPage
from tests.browser.gallery import furnish
from tests.factories import UserFactory

pytestmark = pytest.mark.browser


def test_runs_jobs_and_rights_are_looked_after(
    open_page: OpenPage, take_screenshot: Callable[[Page, str], Path], now: datetime
) -> None:
    ada, job, run = furnish(now)
    bob = UserFactory(username="bob")
    page = open_page("/admin/runs/run/", ada)
    take_screenshot(page, "admin-runs")
    page.goto(f"/admin/jobs/job/{job.pk}/change/")
    take_screenshot(page, "admin-job")
    page.get_by_label("Pages at most").fill("3")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/admin/jobs/job/")
    job.refresh_from_db()
    assert job.parameters["max_pages"] == 3
    page.goto(f"/admin/spiders/spider/{job.spider.pk}/permissions/user-manage/{bob.pk}/")
    take_screenshot(page, "admin-rights")
    page.get_by_label("See it and its runs").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Permissions saved")).to_be_visible()
    assert can(bob, "view", run if run.spider_id == job.spider_id else job)
    assert not can(bob, "run", job)
    assert run.state in State.values


def test_a_schedule_is_looked_up_and_its_crontab_edited(
    open_page: OpenPage, take_screenshot: Callable[[Page, str], Path], now: datetime
) -> None:
    ada, job, _run = furnish(now)
    schedule = create_schedule(
        job=job, by=person(ada), now=now, type="cron", cron="30 9 * * 1-5", timezone="Europe/Berlin", name="weekdays"
    )
    page = open_page("/admin/jobs/schedule/", ada)
    expect(page.get_by_text("every weekday at 09:30")).to_be_visible()
    take_screenshot(page, "admin-schedules")
    page.goto(f"/admin/jobs/schedule/{schedule.pk}/change/")
    take_screenshot(page, "admin-schedule")
    page.goto(f"/admin/django_celery_beat/periodictask/{schedule.task_id}/change/")
    take_screenshot(page, "admin-periodic-task")
    page.goto(f"/admin/django_celery_beat/crontabschedule/{schedule.task.crontab_id}/change/")
    page.get_by_label("Hour(s)").fill("11")
    take_screenshot(page, "admin-crontab")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/admin/django_celery_beat/crontabschedule/")

    look(now=now)

    schedule.refresh_from_db()
    assert (schedule.expression, schedule.stale) == ("30 11 * * 1-5", False)


def test_pages_of_others_making_keep_to_their_policy(open_page: OpenPage, now: datetime) -> None:
    ada, _job, run = furnish(now)
    page = open_page("/admin/", ada)
    for address in (
        f"/admin/runs/run/{run.pk}/change/",
        "/admin/django_celery_beat/periodictask/add/",
        f"/admin/accounts/user/{ada.pk}/change/",
    ):
        page.goto(address)
        expect(page.get_by_role("link", name="To the panel").first).to_be_visible()
    page.goto("/api/docs/")
    expect(page.get_by_text("List runs, newest first")).to_be_visible()
