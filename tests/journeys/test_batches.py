"""Jobs that follow each other, with programs that really run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apps.jobs.models import Dependency, Job
from apps.jobs.services import run_job
from apps.jobs.services.batches import again_from_failed
from apps.runs.models import Batch, Run
from apps.runs.states import TERMINAL
from apps.spiders import archive
from apps.spiders.models import CodeArchive
from tests.apps.runs.agent.rig import lines
from tests.factories import JobFactory, SpiderFactory
from tests.journeys.worker import TESTER, Bench, bench

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
