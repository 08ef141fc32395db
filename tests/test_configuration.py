"""The documentation names every environment variable, and none that nobody reads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CALL = re.compile(r'_(?:text|list|pairs|number|one_of)\("([A-Z_]+)"')
ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
SCRIPTS = ("deploy/up", "deploy/venv.sh", "deploy/node", "deploy/test", "deploy/machine.py", "tests/conftest.py")


def documented() -> tuple[set[str], set[str]]:
    """The variables of the panel, and those of the scripts."""
    panel, scripts = (ROOT / "docs" / "configuration.md").read_text().split("## Scripts")
    return set(ROW.findall(panel)), set(ROW.findall(scripts))


def test_the_table_names_what_the_panel_reads() -> None:
    assert set(CALL.findall((ROOT / "clawpanel" / "env.py").read_text())) == documented()[0]


def test_the_scripts_read_what_the_table_names() -> None:
    text = "".join((ROOT / name).read_text() for name in SCRIPTS)
    text += (ROOT / "clawpanel" / "up" / "__main__.py").read_text()
    assert {name for name in documented()[1] if name not in text} == set()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("CLAWPANEL_PORT", "eighty", "CLAWPANEL_PORT must be a whole number"),
        ("CLAWPANEL_EXECUTOR", "podman", "CLAWPANEL_EXECUTOR must be one of auto, docker, process"),
        ("CLAWPANEL_NODE_LABELS", "zone", "CLAWPANEL_NODE_LABELS must look like zone=eu,browser=yes, not 'zone'"),
        ("REDIS_URL", "amqp://host", "REDIS_URL cannot be used: it begins with amqp://, not with one of redis"),
        ("CLAWPANEL_BROKER_URL", "kafka://host", "CLAWPANEL_BROKER_URL cannot be used: it begins with kafka://"),
        ("CLAWPANEL_HOME", "/proc/nowhere", "No right to write to /proc/nowhere"),
    ],
)
def test_a_bad_value_is_refused_in_one_sentence(name: str, value: str, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"clawpanel: {words}")
    assert "Traceback" not in done.stderr
