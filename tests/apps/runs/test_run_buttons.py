"""Which buttons the page of a run has in which state, what they do, and what the page tells beside them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.test import Client

from apps.accounts import rights
from apps.accounts.models import User
from apps.runs.models import Run, RunEvent
from apps.runs.states import State
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import AttemptFactory, JobFactory, NodeFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "password": {"type": "string", "writeOnly": True},
    },
    "required": ["count"],
}
BUTTONS = {
    State.WAITING: {"stop"},
    State.QUEUED: {"stop"},
    State.STARTING: {"stop"},
    State.RUNNING: {"stop", "pause"},
    State.STOPPING: {"kill"},
    State.RETRY_WAIT: {"stop"},
    State.SUCCEEDED: {"rerun"},
    State.FAILED: {"rerun"},
    State.TIMED_OUT: {"rerun"},
    State.CANCELED: {"rerun"},
    State.LOST: {"rerun"},
    State.SKIPPED: {"rerun"},
}


@pytest.fixture
def user() -> User:
    made: User = UserFactory(username="ada")
    return made


@pytest.fixture
def page(client: Client, user: User) -> Client:
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


def run_of(user: User, role: str = "operator", **values: object) -> Run:
    made: Run = RunFactory(job=JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA)), **values)
    rights.grant(user, role, made.job)
    return made


def head(page: Client, run: Run) -> str:
    return page.get(f"/runs/{run.pk}/head/").content.decode()


def buttons(text: str, run: Run) -> set[str]:
    return set(re.findall(rf'action="/runs/{run.pk}/(\w+)/"', text))


@pytest.mark.parametrize("state", BUTTONS)
def test_the_buttons_are_those_of_the_state(user: User, page: Client, now: datetime, state: State) -> None:
    run = run_of(user, state=state, started_at=now)
    assert buttons(head(page, run), run) == BUTTONS[state]
    assert buttons(page.get("/runs/").content.decode(), run) == BUTTONS[state] - {"pause"}


def test_a_pause_that_is_asked_for_can_be_taken_back_and_ended(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.RUNNING, pause_requested_at=now)
    assert buttons(head(page, run), run) == {"stop", "resume"}
    Run.objects.filter(pk=run.pk).update(state=State.PAUSED, paused_at=now)
    assert buttons(head(page, run), run) == {"stop", "resume"}
    Run.objects.filter(pk=run.pk).update(pause_requested_at=None)
    assert buttons(head(page, run), run) == {"stop"}


def test_a_kill_is_asked_for_once(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.STOPPING, stop_requested_at=now, kill_requested_at=now)
    assert buttons(head(page, run), run) == set()
    assert "It is being killed." in head(page, run)


@pytest.mark.parametrize("state", BUTTONS)
def test_a_viewer_has_no_button_in_any_state(user: User, page: Client, state: State) -> None:
    run = run_of(user, "viewer", state=state)
    assert buttons(head(page, run), run) == set()
    assert f"/runs/{run.pk}/rerun/" not in head(page, run)
    assert "/jobs/" not in head(page, run)


def test_the_job_is_run_and_edited_by_those_who_may(user: User, page: Client) -> None:
    run = run_of(user, "runner", state=State.SUCCEEDED)
    assert f"/jobs/{run.job_id}/run/" in head(page, run)
    assert f"/jobs/{run.job_id}/edit/" not in head(page, run)
    rights.grant(user, "edit", run.job)
    assert f"/jobs/{run.job_id}/edit/" in head(page, run)
    for right in ("view", "run", "edit"):
        rights.grant(user, right, run.project)
    run.job.delete()
    assert "/jobs/" not in head(page, run)


@pytest.mark.parametrize(
    ("action", "state", "column"),
    [
        ("stop", State.RUNNING, "stop_requested_at"),
        ("kill", State.STOPPING, "kill_requested_at"),
        ("pause", State.RUNNING, "pause_requested_at"),
    ],
)
def test_a_button_asks_and_leads_back(user: User, page: Client, action: str, state: State, column: str) -> None:
    run = run_of(user, state=state)
    answer = page.post(f"/runs/{run.pk}/{action}/")
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    run.refresh_from_db()
    assert getattr(run, column) is not None
    assert page.get(f"/runs/{run.pk}/{action}/").status_code == 405


def test_resume_takes_the_pause_back(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.PAUSED, pause_requested_at=now, paused_at=now)
    page.post(f"/runs/{run.pk}/resume/")
    run.refresh_from_db()
    assert run.pause_requested_at is None


@pytest.mark.parametrize("action", ["stop", "kill", "pause", "resume"])
def test_a_run_that_is_over_is_left_alone_with_a_word(user: User, page: Client, action: str) -> None:
    run = run_of(user, state=State.SUCCEEDED)
    before = Run.objects.values().get(pk=run.pk)
    answer = page.post(f"/runs/{run.pk}/{action}/", follow=True)
    assert f"Run {run.pk}" in answer.content.decode()
    assert Run.objects.values().get(pk=run.pk) == before


def test_the_form_of_a_second_run_holds_the_parameters_of_the_first(user: User, page: Client) -> None:
    run = run_of(user, state=State.FAILED)
    run.spec = {**run.spec, "parameters": {"count": 41}, "secrets": {"password": 4711}}
    run.save(update_fields=["spec"])
    text = page.get(f"/runs/{run.pk}/rerun/").content.decode()
    assert 'value="41"' in text
    assert "4711" not in text
    answer = page.post(f"/runs/{run.pk}/rerun/", {"with_changes": "1", "p.count": "7"})
    again = Run.objects.exclude(pk=run.pk).get()
    assert answer["Location"] == f"/runs/{again.pk}/"
    assert again.spec["parameters"] == {"count": 7}
    assert again.spec["secrets"] == {"password": 4711}
    assert again.requested_by == user


def test_parameters_that_do_not_fit_are_shown_again_with_the_reason(user: User, page: Client) -> None:
    run = run_of(user, state=State.FAILED)
    answer = page.post(f"/runs/{run.pk}/rerun/", {"with_changes": "1", "p.count": "0"})
    assert answer.status_code == 422
    assert "Nothing was started yet." in answer.content.decode()
    assert 'value="0"' in answer.content.decode()
    assert Run.objects.count() == 1


def test_the_same_order_again_needs_no_form(user: User, page: Client) -> None:
    run = run_of(user, state=State.FAILED)
    page.post(f"/runs/{run.pk}/rerun/")
    assert {name: Run.objects.latest("pk").spec[name] for name in run.spec} == run.spec


# -- what it tells --------------------------------------------------------------------------------------------------


def event(run: Run, at: datetime, to: str = "", **values: object) -> RunEvent:
    return RunEvent.objects.create(run=run, at=at, to_state=to, **{"actor": "ada", **values})


def test_a_queued_run_says_why_it_waits(user: User, page: Client) -> None:
    assert "No worker is running." in head(page, run_of(user))


def test_a_run_that_waits_to_retry_says_why_and_when(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.RETRY_WAIT, retry_at=now + timedelta(seconds=100), attempt=1)
    budget = {"failures": 1, "attempts": 3, "infrastructure": False, "delay_seconds": 100}
    event(run, now, State.RETRY_WAIT, reason="oom", detail={"memory_mb": 512, **budget})
    text = head(page, run)
    assert "Out of memory: it needed more than 512 MB. 1 of 3 tries are used." in text
    assert re.search(r'Starts again in <strong><span class="claw-ticks" data-until="[^"]+">1 min', text)


def test_a_run_that_failed_says_why_and_how_often_it_was_tried(user: User, page: Client) -> None:
    run = run_of(user, state=State.FAILED, attempt=3, reason="oom", detail={"memory_mb": 512})
    assert "Out of memory: it needed more than 512 MB. It was tried 3 times." in head(page, run)


def test_a_failure_of_the_machines_is_told_as_such(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.RETRY_WAIT, retry_at=now, attempt=1)
    budget = {"failures": 2, "attempts": 3, "infrastructure": True}
    event(run, now, State.RETRY_WAIT, reason="node_lost", detail={"node": "crawl-2", **budget})
    assert "No fault of the spider, so no try of its own: number 2 of at most 3." in head(page, run)


def test_a_stop_counts_down_its_grace(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.STOPPING, stop_requested_at=now)
    event(run, now, State.STOPPING, reason="stopped_by_user", detail={"by": "ada"})
    text = head(page, run)
    assert "Stopped by ada." in text
    assert (now + timedelta(seconds=10)).isoformat() in text


def test_a_pause_says_by_whom_and_how_long_at_most(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.PAUSED, pause_requested_at=now, paused_at=now)
    event(run, now, kind="pause")
    text = head(page, run)
    assert "Paused by ada. Its time limits stand still." in text
    assert (now + timedelta(days=1)).isoformat() in text


def test_the_events_tell_what_happened_when_and_by_whom(user: User, page: Client, now: datetime) -> None:
    run = run_of(user, state=State.FAILED, attempt=2)
    node = NodeFactory(name="crawl-7")
    AttemptFactory(run=run, node=node, reason="oom", detail={"memory_mb": 512}, exit_code=137, finished_at=now)
    told = {"memory_mb": 512, "failures": 1, "attempts": 2, "infrastructure": False, "delay_seconds": 263}
    event(run, now, State.QUEUED)
    event(run, now + timedelta(seconds=2), State.RETRY_WAIT, attempt=1, reason="oom", detail=told)
    for kind in ("adopted", "fenced", "kill", "pause", "resume", "exhausted", "unheard_of"):
        detail = {"from": "w-1", "to": "w-2"} if kind == "adopted" else {}
        event(run, now + timedelta(seconds=5), kind=kind, attempt=2, actor="agent: crawl-7", detail=detail)
    text = page.get(f"/runs/{run.pk}/?tab=events").content.decode()
    for said in (
        "+2 s",
        "It starts again after 4 min 23 s.",
        "Taken over by another worker",
        "From worker w-1 to w-2.",
        "A former worker was shut out",
        "Kill asked for",
        "Pause asked for",
        "Resume asked for",
        "All attempts are used",
        "unheard_of",
        "agent: crawl-7",
        f'href="?tab=log&amp;attempt={1}"',
    ):
        assert said in text, said


# -- one attempt of several -----------------------------------------------------------------------------------------


@pytest.fixture
def tried(user: User, now: datetime) -> Run:
    run = run_of(user, state=State.RUNNING, attempt=2, started_at=now)
    AttemptFactory(run=run, number=1, reason="exit_nonzero", detail={"exit_code": 3}, exit_code=3, finished_at=now)
    AttemptFactory(run=run, number=2, environment="clawpanel-run:abc", started_at=now)
    store_rows(run, [row(1, "first"), row(2, "broken", 40)])
    store_rows(run, [row(3, "second")], attempt=2)
    store_items(run, [{"n": "one"}])
    store_items(run, [{"n": "two"}], first=2, attempt=2)
    return run


def test_log_and_data_are_shown_by_attempt(page: Client, tried: Run) -> None:
    log = page.get(f"/runs/{tried.pk}/?tab=log&attempt=1").content.decode()
    assert "It ended with exit code 3." in log
    assert f'data-rows="/runs/{tried.pk}/log/?attempt=1"' in log
    assert 'data-active="0"' in log
    live = page.get(f"/runs/{tried.pk}/?tab=log&attempt=2").content.decode()
    assert 'data-active="1"' in live
    assert "clawpanel-run:abc" in live
    data = page.get(f"/runs/{tried.pk}/?tab=data&attempt=2").content.decode()
    assert "two" in data
    assert "one</bdi>" not in data
    assert f"/runs/{tried.pk}/items.csv?attempt=2" in data


def test_the_viewer_is_given_one_attempt(page: Client, tried: Run) -> None:
    rows = page.get(f"/runs/{tried.pk}/log/?attempt=2").json()["rows"]
    assert [each[3] for each in rows] == ["second"]
    index = page.get(f"/runs/{tried.pk}/log/index/?attempt=2").json()
    assert (index["base"], index["first_error"], len(index["blocks"])) == (2, None, 1)
    assert page.get(f"/runs/{tried.pk}/log/index/?attempt=1").json()["first_error"] == 2
    assert page.get(f"/runs/{tried.pk}/log/index/").json()["base"] == 0


def test_downloads_are_of_the_attempt(page: Client, tried: Run) -> None:
    log = page.get(f"/runs/{tried.pk}/run.log?attempt=2")
    assert b"".join(log) == b"second\n"
    assert f"run-{tried.pk}-attempt-2.log" in log["Content-Disposition"]
    assert b"".join(page.get(f"/runs/{tried.pk}/items.jsonl?attempt=1")) == b'{"n": "one"}\n'


@pytest.mark.parametrize("asked", ["3", "0", "-1", "x", "9" * 30, "\u0661"])
def test_an_attempt_that_is_none_shows_all_of_them(page: Client, tried: Run, asked: str) -> None:
    text = page.get(f"/runs/{tried.pk}/?tab=log&attempt={asked}")
    assert text.status_code == 200
    assert f'data-rows="/runs/{tried.pk}/log/"' in text.content.decode()
    assert page.get(f"/runs/{tried.pk}/log/?attempt={asked}").status_code == 200


# -- many runs at once ----------------------------------------------------------------------------------------------


def test_many_runs_are_named_before_they_are_stopped(user: User, page: Client) -> None:
    runs = [run_of(user, state=State.RUNNING) for _ in range(3)]
    over, seen = run_of(user, state=State.FAILED), run_of(user, "viewer", state=State.RUNNING)
    foreign = RunFactory(state=State.RUNNING)
    ids = [run.pk for run in (*runs, over, seen, foreign)]
    asked = page.post("/runs/bulk/", {"action": "stop", "ids": ids, "next": "/runs/?state=active"})
    text = asked.content.decode()
    assert "Stop 3 runs?" in text
    assert "3 of the chosen runs are left out" in text
    assert not Run.objects.filter(stop_requested_at__isnull=False).exists()
    confirmed = re.findall(r'name="ids" value="(\d+)"', text)
    form = {"action": "stop", "ids": confirmed, "confirmed": "1", "next": "/runs/?state=active"}
    done = page.post("/runs/bulk/", form)
    assert done["Location"] == "/runs/?state=active"
    stopped = Run.objects.filter(stop_requested_at__isnull=False).values_list("pk", flat=True)
    assert set(stopped) == {run.pk for run in runs}


def test_confirming_what_one_may_not_do_says_so_and_does_the_rest(user: User, page: Client) -> None:
    mine, seen, over = (
        run_of(user, state=State.RUNNING),
        run_of(user, "viewer", state=State.RUNNING),
        run_of(user, state=State.FAILED),
    )
    foreign = RunFactory(state=State.RUNNING)
    form = {"action": "kill", "ids": [foreign.pk, seen.pk, over.pk, mine.pk], "confirmed": "1", "next": "/runs/"}
    text = page.post("/runs/bulk/", form, follow=True).content.decode()
    assert "1 run is being killed." in text
    assert f"You may not do this with run {seen.pk}." in text
    assert f"There is no run {foreign.pk}." in text
    assert f"Run {over.pk} is over already" in text
    for run in (foreign, seen):
        run.refresh_from_db()
        assert run.stop_requested_at is None


@pytest.mark.parametrize(
    "form", [{}, {"action": "stop"}, {"action": "stop", "ids": ["x", "-1", "9" * 30]}, {"action": "drop", "ids": ["1"]}]
)
def test_nothing_chosen_changes_nothing(user: User, page: Client, form: dict[str, object]) -> None:
    run_of(user, state=State.RUNNING)
    answer = page.post("/runs/bulk/", {**form, "confirmed": "1"}, follow=True)
    assert "Choose some runs first." in answer.content.decode()
    assert not Run.objects.filter(stop_requested_at__isnull=False).exists()


def test_many_runs_are_started_again(user: User, page: Client) -> None:
    runs = [run_of(user, state=State.FAILED) for _ in range(2)]
    page.post("/runs/bulk/", {"action": "rerun", "ids": [run.pk for run in runs], "confirmed": "1"})
    assert Run.objects.filter(state=State.QUEUED, job__in=[run.job for run in runs]).count() == 2


def test_only_rows_with_something_to_do_have_a_box(user: User, page: Client) -> None:
    mine, seen = run_of(user, state=State.FAILED), run_of(user, "viewer", state=State.FAILED)
    for address in ("/runs/", f"/runs/rows/?ids={mine.pk},{seen.pk}&select=1"):
        boxes = re.findall(r'name="ids" value="(\d+)" form="bulk"', page.get(address).content.decode())
        assert boxes == [str(mine.pk)]
    assert "bulk" not in page.get(f"/runs/rows/?ids={mine.pk}").content.decode()
