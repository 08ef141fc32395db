"""A second machine joins by URLs alone: `deploy/node` on the servers of a panel, and each way that it cannot."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType

from apps.core.actors import person
from apps.runs import places
from apps.runs.agent import config, joining
from apps.runs.models import Node
from tests.factories import NodeFactory, UserFactory
from tests.panel import ROOT, Panel, free_port, panel

pytestmark = pytest.mark.timeout(420)
SHARED = ("DATABASE_URL", "REDIS_URL", "CLAWPANEL_INSTALL", "CLAWPANEL_ENCRYPTION_KEYS")
AT_ONCE = {"count": 5, "per_second": 0, "items_every": 5}
ANOTHER_MACHINE = "cafecafe.4026531836-77-4711"


@pytest.fixture(scope="module")
def home_panel() -> Iterator[Panel]:
    with panel("process", slots=2) as started:
        yield started


@dataclass
class Joining:
    """`deploy/node` of another home folder; `output` is all it has said."""

    environment: dict[str, str]
    home: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def output(self) -> str:
        return (self.home / "node.log").read_text(errors="replace")

    def start(self) -> None:
        with (self.home / "node.log").open("wb") as log:
            self.process = subprocess.Popen(
                [str(ROOT / "deploy" / "node")], cwd="/", env=self.environment, stdout=log, stderr=log
            )

    def refusal(self) -> str:
        """What it says at its end; it must end by itself."""
        self.start()
        assert self.process is not None
        assert self.process.wait(60) == 2, self.output
        assert "Traceback" not in self.output
        return self.output

    def wait_for(self, words: str, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.output:
            assert self.process is not None
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.1)

    def leave(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def second(home_panel: Panel) -> Iterator[Joining]:
    home = Path(tempfile.mkdtemp(prefix="claw-node-"))
    home.chmod(0o755)
    printed = home_panel.manage("node_settings").splitlines()
    told = dict(line.split("=", 1) for line in printed)
    environment = {name: value for name, value in os.environ.items() if name not in SHARED} | told
    environment |= {
        # The panel's own servers are embedded ones: reachable, for both are this machine.
        "DATABASE_URL": home_panel.environment["DATABASE_URL"],
        "REDIS_URL": home_panel.environment["REDIS_URL"],
        "CLAWPANEL_HOME": str(home),
        "CLAWPANEL_NODE": "second",
        "CLAWPANEL_NODE_SLOTS": "3",
        "CLAWPANEL_NODE_LABELS": "zone=eu,browser=yes",
        "CLAWPANEL_EXECUTOR": "process",
        "CLAWPANEL_DEMO_PORT": str(free_port()),
    }
    joining = Joining(environment, home)
    yield joining
    if joining.process is not None and joining.process.poll() is None:
        joining.process.send_signal(signal.SIGINT)
        joining.process.wait(30)
    shutil.rmtree(home, ignore_errors=True)


def test_a_second_machine_joins_takes_runs_and_leaves(home_panel: Panel, second: Joining) -> None:
    second.start()
    second.wait_for("second has joined.")
    rows = home_panel.get("nodes/")["results"]
    node = next(row for row in rows if row["name"] == "second")
    assert (node["slots"], node["labels"]) == (3, {"browser": "yes", "zone": "eu"})
    job = home_panel.post(
        "jobs/", {"name": "there", "spider": "slow", "parameters": AT_ONCE, "selector": {"zone": "eu"}}
    )
    ended = home_panel.wait(home_panel.run(job["id"]), 60)
    assert (ended["state"], ended["node"]) == ("succeeded", "second")
    assert second.leave() == 0
    assert "worker" in second.output
    assert "left; crawls in containers go on" in second.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"CLAWPANEL_ENCRYPTION_KEYS": "", "CLAWPANEL_INSTALL": ""}, "CLAWPANEL_INSTALL, CLAWPANEL_ENCRYPTION_KEYS"),
        ({"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}, "The database of DATABASE_URL does not answer"),
        ({"REDIS_URL": "redis://127.0.0.1:1/0"}, "The server of REDIS_URL does not answer"),
        ({"CLAWPANEL_BROKER_URL": "amqp://127.0.0.1:1//"}, "The broker of CLAWPANEL_BROKER_URL does not answer"),
        ({"CLAWPANEL_NODE_LABELS": "zone=e u"}, "CLAWPANEL_NODE_LABELS: “zone=e u”"),
    ],
)
def test_what_keeps_a_machine_out_is_said_in_one_sentence(second: Joining, change: dict[str, str], words: str) -> None:
    second.environment |= change
    assert words in second.refusal()


def test_an_empty_database_is_not_migrated_by_a_node(second: Joining, home_panel: Panel) -> None:
    second.environment["DATABASE_URL"] = home_panel.environment["DATABASE_URL"].replace("/clawpanel", "/postgres")
    assert "migrations of this version: bring the panel up to date first" in second.refusal()


def test_a_newer_database_keeps_a_new_node_out_and_lets_a_known_one_return(second: Joining, home_panel: Panel) -> None:
    add = "INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9999_from_the_future', now())"
    sql(home_panel, add)
    try:
        second.environment["CLAWPANEL_NODE"] = "third"
        assert "The panel is newer than this version: its database has runs.9999_from_the_future" in second.refusal()
        second.environment["CLAWPANEL_NODE"] = node_of(home_panel)
        done = check(second)
        assert done.returncode == 0, done.stderr
        assert "Update this machine." in done.stdout
    finally:
        sql(home_panel, "DELETE FROM django_migrations WHERE name = '9999_from_the_future'")


def test_a_name_that_another_machine_uses_is_refused_until_it_is_silent(second: Joining, home_panel: Panel) -> None:
    columns = {
        "name": "elsewhere",
        "executor": "docker",
        "isolated": True,
        "slots": 1,
        "memory_bytes": 1,
        "cpus": 1,
        "worker": ANOTHER_MACHINE,
        "started_at": datetime.now(UTC),
        "heartbeat_at": datetime.now(UTC) + timedelta(minutes=5),
    }
    create(home_panel, "from apps.runs.models import Node", f"Node.objects.create(**{columns!r})")
    second.environment["CLAWPANEL_NODE"] = "elsewhere"
    assert "The name elsewhere belongs to a living worker of another machine" in second.refusal()
    sql(home_panel, "UPDATE runs_node SET heartbeat_at = now() - interval '21 seconds' WHERE name = 'elsewhere'")
    assert check(second).returncode == 0


def test_wrong_keys_are_noticed_before_a_run_fails_of_them(second: Joining, home_panel: Panel) -> None:
    sealed = Fernet(Fernet.generate_key()).encrypt(b"word")
    secret = f"project=Project.objects.first(), ciphertext={sealed!r}, created_at={datetime.now(UTC)!r}"
    create(home_panel, "from apps.spiders.models import Project, Secret", f"Secret.objects.create({secret})")
    try:
        assert "CLAWPANEL_ENCRYPTION_KEYS are not the panel's" in second.refusal()
    finally:
        sql(home_panel, "DELETE FROM spiders_secret")


def test_the_settings_for_a_node_say_that_embedded_servers_are_out_of_reach(home_panel: Panel) -> None:
    environment = {name: value for name, value in home_panel.environment.items() if name not in SHARED}
    done = subprocess.run(
        [sys.executable, "manage.py", "node_settings"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "DATABASE_URL and REDIS_URL: this panel uses its embedded server" in done.stderr
    assert "CLAWPANEL_INSTALL=" in done.stdout


@pytest.mark.django_db
def test_labels_of_the_machine_hold_until_a_person_says_otherwise(now: datetime) -> None:
    node = NodeFactory(labels={})
    joining.declare_labels(node=node, labels={"zone": "eu"}, now=now)
    joining.declare_labels(node=node, labels={"zone": "us"}, now=now)
    assert node.labels == {"zone": "us"}, "no person has said anything"

    admin = person(UserFactory(is_superuser=True))
    places.set_labels(node=node, by=admin, now=now, labels={"zone": "moon"})
    joining.declare_labels(node=node, labels={"zone": "us"}, now=now)
    assert node.labels == {"zone": "moon"}

    places.set_labels(node=node, by=admin, now=now, labels={})
    joining.declare_labels(node=node, labels={"zone": "us"}, now=now)
    assert node.labels == {"zone": "us"}
    assert (
        LogEntry.objects.filter(action_flag=CHANGE, content_type=ContentType.objects.get_for_model(Node)).count() == 2
    )


@pytest.mark.django_db
def test_a_worker_of_this_machine_is_no_rival() -> None:
    at = datetime.now(UTC)
    NodeFactory(name="ours", worker=config.worker_id(1), heartbeat_at=at)
    NodeFactory(name="theirs", worker=ANOTHER_MACHINE, heartbeat_at=at)
    assert joining.rival("ours") is None
    assert joining.rival("unheard-of") is None
    assert joining.rival("theirs") is not None


def node_of(running: Panel) -> str:
    return str(running.get("nodes/")["results"][0]["name"])


def sql(running: Panel, statement: str) -> None:
    code = f"from django.db import connection; connection.cursor().execute({statement!r})"
    running.manage("shell", "--no-imports", "-c", code)


def create(running: Panel, names: str, statement: str) -> None:
    running.manage("shell", "--no-imports", "-c", f"import datetime; {names}; {statement}")


def check(node: Joining) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "check_node"]
    return subprocess.run(command, cwd=ROOT, env=node.environment, capture_output=True, text=True, check=False)
