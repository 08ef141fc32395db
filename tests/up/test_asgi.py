"""What the web server's entry leaves behind."""

from __future__ import annotations

import subprocess
import sys

from tests.panel import ROOT

LOOK = "import os, clawpanel.asgi; from clawpanel import env; print(env.DATABASE_POOL, dict(os.environ).get('{}'))"


def test_the_pool_of_the_web_server_is_not_left_to_processes_started_from_it(tmp_path: object) -> None:
    name = "CLAWPANEL_DATABASE_POOL"
    for given, seen in (({}, "10 None"), ({name: "7"}, "7 7")):
        environment = {"PATH": "/usr/bin:/bin", "CLAWPANEL_HOME": str(tmp_path), **given}
        done = subprocess.run(
            [sys.executable, "-c", LOOK.format(name)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == seen.split()
