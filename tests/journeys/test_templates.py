"""Templates from a job to the arguments of a program that really runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apps.jobs.models import Dependency, Job
from apps.jobs.services import Launch, launch
from apps.runs.models import Run
from apps.runs.states import TERMINAL, Trigger
from apps.spiders import archive
from apps.spiders.models import CodeArchive
from tests.apps.runs.agent.rig import lines
from tests.factories import JobFactory, SpiderFactory
from tests.journeys.worker import TESTER, Bench, bench

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = """
import json, os, sys
params = json.loads(os.environ["CLAW_PARAMS"])
print(json.dumps([sys.argv[1:], os.environ.get("WHERE"), params]), flush=True)
with open(os.environ["CLAW_RECORDS"], "a") as records:
    records.write("output " + json.dumps({"text": params.get("text"), "count": 12}) + "\\n")
"""
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "day": {"type": "string"}},
}
HOSTILE = "$(touch /tmp/claw-was-here) `id` ; rm -rf / \"'\n--help {{ yesterday }}"


@pytest.fixture
def panel() -> Iterator[Bench]:
    with bench() as made:
        yield made


def job_of(spider: Any, name: str, **fields: Any) -> Job:
    return JobFactory(spider=spider, project=spider.project, name=name, memory_mb=128, **fields)


def test_dates_hostile_texts_and_outputs_arrive_as_one_argument_each(panel: Bench) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(SCRIPT)
        digest, content = archive.pack(Path(folder))
    now = datetime.now(UTC)
    code = CodeArchive.objects.create(digest=digest, content=content, created_at=now)
    command = ["python3", "main.py", "--from={{ yesterday }}"]
    spider = SpiderFactory(
        kind="command", version__parameter_schema=SCHEMA, version__code=code, version__command=command
    )
    first = job_of(
        spider,
        "first",
        parameters={"text": HOSTILE.replace("{{ yesterday }}", "{{ '{{ yesterday }}' }}")},
        arguments=["{{ params.text }}", "--text={{ params.text }}", "on {{ node.name }}"],
        env={"WHERE": "{{ node.name | upper }}"},
    )
    second = job_of(
        spider,
        "second one",
        parameters={"count": "{{ upstream.first.count }}", "text": "{{ upstream.first.text }}", "day": "{{ today }}"},
        arguments=["{{ upstream.first.text }}"],
    )
    Dependency.objects.create(job=second, upstream=first)
    slot = datetime(2026, 11, 29, 16, 5, tzinfo=UTC)
    panel.start_worker()

    wanted = Launch(job=first, trigger=Trigger.MANUAL, scheduled_for=slot, zone="Asia/Shanghai")
    run, _new = launch(wanted=wanted, by=TESTER, now=now)

    panel.wait(run, lambda each: each.state in TERMINAL)
    assert run.state == "succeeded", panel.log()[-3000:]
    arguments, where, parameters = json.loads(lines(run)[0])
    assert arguments == ["--from=2026-11-29", HOSTILE, f"--text={HOSTILE}", "on node-t"]
    assert (where, parameters) == ("NODE-T", {"text": HOSTILE})
    following = Run.objects.get(job=second)
    panel.wait(following, lambda each: each.state in TERMINAL)
    assert following.state == "succeeded", (following.reason, following.detail, panel.log()[-3000:])
    arguments, _where, parameters = json.loads(lines(following)[0])
    assert arguments == ["--from=2026-11-29", HOSTILE]
    assert parameters == {"count": 12, "text": HOSTILE, "day": "2026-11-30"}
    assert not Path("/tmp/claw-was-here").exists()
