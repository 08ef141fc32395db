"""Jobs that follow each other, with programs that really run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from apps.jobs.models import Dependency, Job
from apps.jobs.services import run_job
from apps.jobs.services.batches import again_from_failed, settle_open
from apps.runs.models import Batch, Run, RunEvent
from apps.runs.states import TERMINAL
from apps.spiders import archive
from apps.spiders.models import CodeArchive
from tests.apps.jobs.batches.chain import after, end, jobs_of, start, states
from tests.apps.runs.agent.rig import lines
from tests.factories import JobFactory, SpiderFactory
from tests.journeys.worker import ROOT, TESTER, Bench, bench, wait_for_sessions_to_end

pytestmark = pytest.mark.django_db(transaction=True)

# Puts out what it was given and one more; fails while the file it is to wait for is not there.
SCRIPT = """
import json, os, sys
params = json.loads(os.environ["CLAW_PARAMS"])
print(json.dumps(params), flush=True)
if not os.path.exists(params.get("needs", "/")):
    sys.exit(3)
with open(os.environ["CLAW_RECORDS"], "a") as records:
    records.write("output " + json.dumps({"n": params.get("n", 0) + 1}) + "\\n")
"""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "needs": {"type": "string"}}}


@pytest.fixture
def panel() -> Iterator[Bench]:
    with bench() as made:
        yield made


def jobs_on(panel: Bench) -> dict[str, Job]:
    """fetch → clean → report, with a retry in the middle, and an alarm when the middle fails."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(SCRIPT)
        digest, content = archive.pack(Path(folder))
    code = CodeArchive.objects.create(digest=digest, content=content, created_at=datetime.now(UTC))
    spider = SpiderFactory(
        version__parameter_schema=SCHEMA, version__code=code, version__command=["python3", "main.py"]
    )
    retry = {"attempts": 2, "backoff": "fixed", "delay_seconds": 1, "jitter": 0}
    given: dict[str, dict[str, Any]] = {
        "fetch": {"parameters": {"n": 10}},
        "clean": {"parameters": {"n": "{{ upstream.fetch.n }}", "needs": str(panel.home / "door")}, "retry": retry},
        "report": {"parameters": {"n": "{{ upstream.clean.n }}"}},
        "alarm": {},
    }
    jobs = {name: JobFactory(spider=spider, name=name, memory_mb=128, **more) for name, more in given.items()}
    for upstream, job, condition in (
        ("fetch", "clean", "success"),
        ("clean", "report", "success"),
        ("clean", "alarm", "failure"),
    ):
        Dependency.objects.create(job=jobs[job], upstream=jobs[upstream], condition=condition)
    return jobs


def ended(panel: Bench, batch: Batch, job: Job) -> Run:
    run = Run.objects.get(batch=batch, job=job)
    panel.wait(run, lambda each: each.state in TERMINAL)
    return run


def test_a_chain_fails_in_the_middle_and_goes_on_from_there(panel: Bench) -> None:
    jobs = jobs_on(panel)
    panel.start_worker()

    root, _new = run_job(job=jobs["fetch"], by=TESTER, now=datetime.now(UTC), trigger="manual")
    assert root.batch is not None
    states = {name: ended(panel, root.batch, job).state for name, job in jobs.items()}
    assert states == {"fetch": "succeeded", "clean": "failed", "report": "skipped", "alarm": "succeeded"}, panel.log()
    clean = Run.objects.get(batch=root.batch, job=jobs["clean"])
    # The first failure was none: another attempt followed.
    assert clean.attempt == 2

    (panel.home / "door").touch()
    again = again_from_failed(batch=root.batch, by=TESTER, now=datetime.now(UTC))
    states = {name: ended(panel, again, jobs[name]).state for name in ("clean", "report", "alarm")}

    assert states == {"clean": "succeeded", "report": "succeeded", "alarm": "skipped"}, panel.log()
    report = Run.objects.get(batch=again, job=jobs["report"])
    assert json.loads(lines(report)[0]) == {"n": 12}
    assert report.output == {"n": 13}
    assert not Run.objects.filter(batch=again, job=jobs["fetch"]).exists()
    panel.wait(report, lambda _each: Batch.objects.filter(finished_at=None).count() == 0)


# Dies by the kernel's hand between two children that are to go.
DYING = """
import os, signal
import django
django.setup()
from django.utils import timezone
from apps.jobs.services.batches import settling

give_turn = settling.give_turn

def and_die(**given):
    give_turn(**given)
    os.kill(os.getpid(), signal.SIGKILL)

settling.give_turn = and_die
settling.settle_open(now=timezone.now())
"""


def test_an_evaluator_that_is_killed_between_two_children_leaves_both_to_the_next(now: datetime) -> None:
    first, *children = jobs_of("first", "one", "two")
    for child in children:
        after(child, first)
    batch = start(first, now)
    end(batch, first, "succeeded", now, looked_at=False)
    parts = urlsplit(os.environ["DATABASE_URL"])
    url = urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))

    died = subprocess.run([sys.executable, "-c", DYING], cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=False)

    assert died.returncode == -signal.SIGKILL
    wait_for_sessions_to_end()
    assert states(batch) == {"first": "succeeded", "one": "waiting", "two": "waiting"}
    settle_open(now=now)
    settle_open(now=now)
    assert states(batch) == {"first": "succeeded", "one": "queued", "two": "queued"}
    assert RunEvent.objects.filter(kind="turn").count() == 2
