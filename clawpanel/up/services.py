"""The processes of the panel and how each is started; docs and deploy/ start the same commands."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from clawpanel import env
from clawpanel.up.supervisor import Service

DEMO_SERVER = env.BASE_DIR / "deploy" / "demo_site" / "serve.py"
WORKER_THREADS = 4


def node_name() -> str:
    """Names this machine's queue; the worker reads the same variable."""
    return env.NODE or socket.gethostname()


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "clawpanel.settings",
        "PYTHONUNBUFFERED": "1",
        "CLAWPANEL_NODE": node_name(),
        # The panel's processes are small and many-threaded: without this glibc keeps up to 8 heaps per core.
        "MALLOC_ARENA_MAX": "2",
        **more,
    }


def celery_environment(**more: str) -> dict[str, str]:
    """Without Django's checks, which would load all pages and the API into a process that has none."""
    return environment(CELERY_SKIP_CHECKS="1", **more)


def demo(address: str) -> Service:
    return Service("demo", (sys.executable, str(DEMO_SERVER), "--bind", address), environment(), env.BASE_DIR, 2)


def preparation(result: Path) -> Service:
    command = (sys.executable, str(env.BASE_DIR / "manage.py"), "prepare", "--result", str(result))
    return Service("up", command, environment(), env.BASE_DIR)


def joining(result: Path) -> Service:
    command = (sys.executable, str(env.BASE_DIR / "manage.py"), "check_node", "--result", str(result))
    return Service("node", command, environment(), env.BASE_DIR)


def web() -> Service:
    command = [sys.executable, "-m", "daphne", "--bind", env.BIND, "--port", str(env.PORT), "--verbosity", "0"]
    command += ["--server-name", "clawpanel", "clawpanel.asgi:application"]
    return Service("web", command, environment(), env.BASE_DIR)


def worker(demo_site: str, executor: str) -> Service:
    command = [sys.executable, "-m", "celery", "--quiet", "--app", "clawpanel", "worker", "--pool", "threads"]
    command += ["--concurrency", str(WORKER_THREADS), "--queues", f"control,node.{node_name()}"]
    command += [
        "--hostname",
        f"worker@{node_name()}",
        "--without-gossip",
        "--without-mingle",
        "--heartbeat-interval",
        "30",
        "--loglevel",
        "INFO",
    ]
    # What was decided once holds until the next start: the worker is not to choose anew when it is restarted.
    more = {"CLAWPANEL_DEMO_SITE": demo_site, "CLAWPANEL_EXECUTOR": executor}
    return Service("worker", command, celery_environment(**more), env.BASE_DIR)


def beat(home: Path) -> Service:
    command = [sys.executable, "-m", "celery", "--quiet", "--app", "clawpanel", "beat", "--loglevel", "WARNING"]
    command += ["--pidfile", "", "--schedule", str(home / "beat")]
    return Service("beat", command, celery_environment(), env.BASE_DIR)
