"""What people do with runs, in a real browser: stop and kill, pause and resume, again with changes, many at once."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from apps.accounts import rights
from apps.core.actors import SYSTEM
from apps.runs import live
from apps.runs.models import Run
from apps.runs.moves import move
from apps.runs.states import State
from tests.apps.runs.logged import row, store_items, store_rows
from tests.browser.conftest import PHONE, OpenPage
from tests.factories import (
    AdminFactory,
    AttemptFactory,
    JobFactory,
    NodeFactory,
    RunFactory,
    SpiderFactory,
    UserFactory,
)

pytestmark = pytest.mark.browser

SCHEMA = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "title": "Word", "default": "sea"},
        "count": {"type": "integer", "title": "Count", "minimum": 1},
    },
}


def answer(page: Page, name: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=name).click()


def press(page: Page, name: str) -> None:
    page.locator("#run-head").get_by_role("button", name=name).click()


def test_a_stop_gives_grace_and_then_a_kill(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, started_at=now, node=NodeFactory())
    page = open_page(f"/runs/{run.pk}/?tab=events", AdminFactory(username="ada"))
    press(page, "Stop")
    expect(page.get_by_role("dialog")).to_contain_text(f"Stop run #{run.pk} of")
    answer(page, "Stop")
    head = page.locator("#run-head")
    expect(head).to_contain_text("Stopped by ada.")
    expect(head).to_contain_text("Time to end by itself:")
    expect(head.get_by_role("button", name="Stop")).to_have_count(0)
    press(page, "Kill now")
    answer(page, "Cancel")
    assert Run.objects.get(pk=run.pk).kill_requested_at is None
    press(page, "Kill now")
    answer(page, "Kill now")
    expect(head).to_contain_text("It is being killed.")
    expect(head.get_by_role("button", name="Kill now")).to_have_count(0)
    expect(page.locator(".claw-timeline")).to_contain_text("Kill asked for")
    move(run_id=run.pk, to=State.CANCELED, frm=(State.STOPPING,), now=now, actor=SYSTEM, reason="stopped_by_user")
    # The head asks every three seconds: the page needs no reload.
    expect(head.get_by_role("button", name="Run again")).to_be_visible()


def test_a_pause_and_its_end(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, started_at=now, node=NodeFactory())
    page = open_page(f"/runs/{run.pk}/?tab=events", AdminFactory(username="ada"))
    head = page.locator("#run-head")
    press(page, "Pause")
    expect(head).to_contain_text("A pause is asked for.")
    move(run_id=run.pk, to=State.PAUSED, frm=(State.RUNNING,), now=now, actor=SYSTEM, paused_at=now)
    expect(head).to_contain_text("Paused by ada. Its time limits stand still.")
    expect(head.locator(".claw-ticks[data-until]")).to_contain_text("23 h")
    press(page, "Resume")
    expect(head).to_contain_text("It goes on in a moment.")
    expect(page.locator(".claw-timeline")).to_contain_text("Resume asked for")


def test_again_with_other_parameters(open_page: OpenPage) -> None:
    job = JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA))
    run = RunFactory(job=job, state=State.FAILED, reason="exit_nonzero", detail={"exit_code": 3})
    run.spec = {**run.spec, "parameters": {"word": "winter", "count": 4}}
    run.save(update_fields=["spec"])
    page = open_page(f"/runs/{run.pk}/", AdminFactory())
    page.locator("#run-head").get_by_role("link", name="with changes").click()
    expect(page.get_by_label("Word")).to_have_value("winter")
    page.get_by_role("textbox", name="Count").fill("0")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was started yet.")
    expect(page.get_by_label("Word")).to_have_value("winter")
    page.get_by_role("textbox", name="Count").fill("9")
    page.get_by_role("button", name="Run again").click()
    page.wait_for_url(lambda address: f"/runs/{run.pk}/" not in address)
    again = Run.objects.exclude(pk=run.pk).get()
    assert again.spec["parameters"] == {"word": "winter", "count": 9}


def test_the_job_is_run_and_edited_from_the_menu(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(job=JobFactory(overlap="allow"), state=State.RUNNING, started_at=now)
    page = open_page(f"/runs/{run.pk}/", AdminFactory())
    page.get_by_label("More actions").click()
    expect(page.get_by_role("link", name="Edit the job")).to_be_visible()
    # The head is drawn anew every three seconds while the run is active; an open menu stays open.
    page.wait_for_timeout(3500)
    expect(page.get_by_role("link", name="Edit the job")).to_be_visible()
    page.get_by_role("button", name="Run the job now").click()
    page.wait_for_url(lambda address: f"/runs/{run.pk}/" not in address)
    assert Run.objects.filter(job=run.job).count() == 2


def test_an_attempt_has_its_own_log_and_data(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, started_at=now, attempt=2)
    AttemptFactory(run=run, number=1, reason="oom", detail={"memory_mb": 512}, finished_at=now, lines=2, items=1)
    AttemptFactory(run=run, number=2, started_at=now)
    store_rows(run, [row(1, "the first try"), row(2, "out of memory", 40)])
    store_rows(run, [row(3, "the second try")], attempt=2)
    store_items(run, [{"found": "early"}])
    store_items(run, [{"found": "late"}], first=2, attempt=2)
    page = open_page(f"/runs/{run.pk}/?tab=log", AdminFactory())
    lines = page.locator(".claw-log-row[data-line]")
    expect(lines).to_have_count(3)
    page.get_by_role("link", name="Attempt 1").click()
    expect(lines).to_have_count(2)
    expect(page.locator(".claw-attempt")).to_contain_text("Out of memory: it needed more than 512 MB.")
    expect(page.locator("[data-log=footer]")).to_contain_text("2 lines")
    page.get_by_role("link", name="Attempt 2").click()
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("the second try")
    expect(page.locator("[data-log=footer]")).to_contain_text("1 line")
    # The attempt that goes on is live, and only its own lines come.
    fresh = [row(4, "it goes on")]
    store_rows(run, fresh, attempt=2)
    live.publish_lines(run.pk, fresh)
    expect(lines).to_have_count(2)
    page.get_by_role("navigation", name="Parts of this run").get_by_role("link", name="Data").click()
    page.get_by_role("link", name="Attempt 2").click()
    expect(page.locator(".claw-items tbody tr")).to_have_count(1)
    expect(page.locator(".claw-items")).to_contain_text("late")


def test_the_log_of_an_attempt_ends_where_the_next_begins(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, started_at=now, attempt=2)
    AttemptFactory(run=run, number=1, finished_at=now)
    AttemptFactory(run=run, number=2, started_at=now)
    store_rows(run, [row(1, "old")])
    store_rows(run, [row(2, "own")], attempt=2)
    page = open_page(f"/runs/{run.pk}/?tab=log&attempt=2", AdminFactory())
    lines = page.locator(".claw-log-row[data-line]")
    expect(lines).to_have_count(1)
    Run.objects.filter(pk=run.pk).update(attempt=3)
    store_rows(run, [row(3, "of the next")], attempt=3)
    live.publish_lines(run.pk, [row(3, "of the next")])
    live.publish_state(run.pk, {"state": "running", "attempt": 3})
    expect(page.locator("[data-log=footer]")).to_contain_text("complete")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("own")


@pytest.mark.parametrize("size", [None, PHONE])
def test_many_runs_are_chosen_and_stopped(open_page: OpenPage, now: datetime, size: dict[str, int] | None) -> None:
    runs = [RunFactory(state=State.RUNNING, started_at=now, node=NodeFactory()) for _ in range(3)]
    over = RunFactory(state=State.FAILED)
    page = open_page("/runs/", AdminFactory(), size=size)
    bar = page.locator("#bulk")
    expect(bar).to_be_hidden()
    for run in (*runs[:2], over):
        page.locator(f"#run-{run.pk} input[name=ids]").check()
    expect(bar).to_contain_text("3 runs chosen")
    # The live list replaces rows: what is chosen stays chosen.
    live.notice(runs[0].pk, State.RUNNING)
    page.wait_for_timeout(800)
    expect(page.locator(f"#run-{runs[0].pk} input[name=ids]")).to_be_checked()
    bar.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Stop 2 runs?")
    expect(page.locator("#content")).to_contain_text("1 of the chosen runs is left out")
    page.locator("#content").get_by_role("button", name="Stop").click()
    expect(page.locator("#messages")).to_contain_text("2 runs were asked to stop.")
    states = {run.pk: Run.objects.get(pk=run.pk).state for run in runs}
    assert list(states.values()) == [State.STOPPING, State.STOPPING, State.RUNNING]


def test_all_on_the_page_are_chosen_and_none(open_page: OpenPage) -> None:
    for _ in range(3):
        RunFactory(state=State.FAILED)
    page = open_page("/runs/", AdminFactory())
    page.get_by_label("Choose all on this page").check()
    expect(page.locator("#bulk")).to_contain_text("3 runs chosen")
    page.get_by_role("button", name="Choose none").click()
    expect(page.locator("#bulk")).to_be_hidden()


def test_without_a_script_many_runs_are_stopped_too(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, started_at=now, node=NodeFactory())
    page = open_page("/runs/", AdminFactory(), scripts=False)
    expect(page.locator("#bulk")).to_be_visible()
    page.locator(f"#run-{run.pk} input[name=ids]").check()
    page.locator("#bulk").get_by_role("button", name="Stop").click()
    page.locator("#content").get_by_role("button", name="Stop").click()
    expect(page.locator("#messages")).to_contain_text("1 run was asked to stop.")
    assert Run.objects.get(pk=run.pk).state == State.STOPPING


def test_a_wait_for_the_next_attempt_counts_down(open_page: OpenPage, now: datetime) -> None:
    run = RunFactory(state=State.RETRY_WAIT, retry_at=now + timedelta(minutes=4), reason="oom", attempt=1)
    reader = UserFactory()
    rights.grant(reader, "view", run.job)
    page = open_page(f"/runs/{run.pk}/", reader)
    left = page.locator("#run-head .claw-ticks[data-until]")
    before = left.inner_text()
    expect(left).not_to_have_text(before, timeout=5000)
    expect(page.locator("#run-head").get_by_role("button")).to_have_count(0)
