"""`manage.py run_job`."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from apps.jobs.management.commands import run_job
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.runs.states import State
from tests.apps.runs.logged import row, store_rows
from tests.factories import JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "word": {"type": "string"},
        "words": {"type": "array", "items": {"type": "string"}},
    },
}


@pytest.fixture
def job() -> Job:
    return JobFactory(name="nightly", spider=SpiderFactory(version__parameter_schema=SCHEMA))


@pytest.fixture
def world(monkeypatch) -> Callable[[Callable[[], None]], None]:
    """Lets something happen each time the command waits."""

    def happen(event: Callable[[], None]) -> None:
        monkeypatch.setattr(run_job.time, "sleep", lambda _seconds: event())

    return happen


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("run_job", *arguments, stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_parameters_are_read_by_the_type_the_schema_gives_them(job):
    run("nightly", "--param", "count=7", "--param", "word=7", "--param", 'words=["a=b"]')
    assert Run.objects.get().spec["parameters"] == {"count": 7, "word": "7", "words": ["a=b"]}


def test_a_job_is_found_by_id_too(job):
    assert run(str(job.pk))[0] == 0
    assert Run.objects.get().job == job


def test_a_name_of_two_jobs_needs_the_id(job):
    JobFactory(name="nightly")
    with pytest.raises(CommandError, match="say the id"):
        run("nightly")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "no job nothing"),
        (("nightly", "--param", "count"), "NAME=VALUE"),
        (("nightly", "--param", "count=many"), "JSON of type integer"),
        (("nightly", "--param", "count=0"), "count"),
        (("nightly", "--param", "other=1"), "other"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(job, arguments, words):
    with pytest.raises(CommandError, match=words):
        run(*arguments)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.SUCCEEDED, 0),
        (State.FAILED, 1),
        (State.TIMED_OUT, 2),
        (State.CANCELED, 3),
        (State.LOST, 4),
        (State.SKIPPED, 4),
    ],
)
def test_the_exit_code_tells_the_outcome(job, world, state, code):
    world(lambda: Run.objects.update(state=state))
    ended, _out, err = run("nightly", "--wait")
    assert ended == code
    assert str(state) in err


def test_the_log_goes_to_stdout_as_it_grows(job, world):
    lines = 0

    def event() -> None:
        nonlocal lines
        lines += 1
        store_rows(Run.objects.get(), [row(lines)])
        if lines == 3:
            Run.objects.update(state=State.SUCCEEDED)

    world(event)
    assert run("nightly", "--wait")[1] == "line 1\nline 2\nline 3\n"


@pytest.mark.parametrize(("options", "state"), [((), State.QUEUED), (("--stop-on-interrupt",), State.CANCELED)])
def test_an_interrupt_leaves_the_run_going_unless_told_otherwise(job, world, options, state):
    def interrupt() -> None:
        raise KeyboardInterrupt

    world(interrupt)
    assert run("nightly", "--wait", *options)[0] == 130
    assert Run.objects.get().state == state


def test_a_skipped_run_is_said_and_does_not_count_as_done(job):
    run("nightly")
    earlier = Run.objects.get()

    code, _out, err = run("nightly", "--wait")

    assert code == 4
    assert f"Skipped: run {earlier.pk} of the same job was still active." in err
