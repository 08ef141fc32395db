"""Every environment variable the panel reads, in one place. docs/configuration.md is checked against this file."""

from __future__ import annotations

import os
from pathlib import Path

import environ

from clawpanel.refusal import CannotStart

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()


def _number(name: str, default: int) -> int:
    try:
        return int(env.str(name, default=str(default)))
    except ValueError as error:
        raise CannotStart(f"{name} must be a whole number, not {env.str(name)!r}.") from error


def _one_of(name: str, *choices: str) -> str:
    """The first choice is the default."""
    value = env.str(name, default=choices[0]) or choices[0]
    if value not in choices:
        raise CannotStart(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


HOME = Path(env.str("CLAWPANEL_HOME", default=str(BASE_DIR / "var"))).absolute()
DATABASE_URL = env.str("DATABASE_URL", default="")
DATABASE_POOL = _number("CLAWPANEL_DATABASE_POOL", 0)
REDIS_URL = env.str("REDIS_URL", default="")
BIND = env.str("CLAWPANEL_BIND", default="127.0.0.1")
PORT = _number("CLAWPANEL_PORT", 8000)
PUBLIC_URL = env.str("CLAWPANEL_URL", default="")
ALLOWED_HOSTS = env.list("CLAWPANEL_ALLOWED_HOSTS", default=[])
DEBUG = env.bool("CLAWPANEL_DEBUG", default=False)
SECRET_KEY = env.str("CLAWPANEL_SECRET_KEY", default="")
ENCRYPTION_KEYS = env.list("CLAWPANEL_ENCRYPTION_KEYS", default=[])
ADMIN_PASSWORD = env.str("CLAWPANEL_ADMIN_PASSWORD", default="")
ADMIN_USER = env.str("CLAWPANEL_ADMIN_USER", default="admin")
EXECUTOR = _one_of("CLAWPANEL_EXECUTOR", "auto", "docker", "process")
INSTALL = env.str("CLAWPANEL_INSTALL", default="")
NODE = env.str("CLAWPANEL_NODE", default="")
NODE_SLOTS = _number("CLAWPANEL_NODE_SLOTS", 0)
DOCKER_URL = env.str("DOCKER_HOST", default="")
RUNNER_BASE = env.str("CLAWPANEL_RUNNER_BASE", default="")
ISOLATION = env.str("CLAWPANEL_ISOLATION", default="")
PROCESS_USER = env.str("CLAWPANEL_PROCESS_USER", default="")
DEMO_PORT = _number("CLAWPANEL_DEMO_PORT", 8210)
DEMO_SITE = env.str("CLAWPANEL_DEMO_SITE", default="")
LOG_LEVEL = _one_of("CLAWPANEL_LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR")
SPIDER_REPO = Path(env.str("CLAWPANEL_SPIDER_REPO", default=str(BASE_DIR / "spider_repo"))).absolute()

BUILD_PREFIXES = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE")
BUILD_NAMES = {"http_proxy", "https_proxy", "no_proxy", "all_proxy"}


def build_environment() -> dict[str, str]:
    """The machine's own words on where packages come from, which the build of an environment may see."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(BUILD_PREFIXES) or name.lower() in BUILD_NAMES
    }
