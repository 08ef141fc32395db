"""Every environment variable the panel reads, in one place. docs/configuration.md is checked against this file."""

from __future__ import annotations

import os
from pathlib import Path

from clawpanel.refusal import CannotStart

BASE_DIR = Path(__file__).resolve().parent.parent


def _text(name: str, default: str = "") -> str:
    """Set but empty counts as not set: that is what compose makes of a variable nobody gave."""
    return os.environ.get(name, "") or default


def _list(name: str) -> list[str]:
    return [part.strip() for part in _text(name).split(",") if part.strip()]


def _pairs(name: str) -> dict[str, str]:
    """`zone=eu,browser=yes`"""
    pairs = {}
    for part in _list(name):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise CannotStart(f"{name} must look like zone=eu,browser=yes, not {_text(name)!r}.")
        pairs[key] = value
    return pairs


def _number(name: str, default: int) -> int:
    try:
        return int(_text(name, str(default)))
    except ValueError as error:
        raise CannotStart(f"{name} must be a whole number, not {_text(name)!r}.") from error


def _one_of(name: str, *choices: str) -> str:
    """The first choice is the default."""
    value = _text(name, choices[0])
    if value not in choices:
        raise CannotStart(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


HOME = Path(_text("CLAWPANEL_HOME") or BASE_DIR / "var").absolute()
DATABASE_URL = _text("DATABASE_URL")
DATABASE_POOL = _number("CLAWPANEL_DATABASE_POOL", 0)
REDIS_URL = _text("REDIS_URL")
BROKER_URL = _text("CLAWPANEL_BROKER_URL")
BIND = _text("CLAWPANEL_BIND", "127.0.0.1")
PORT = _number("CLAWPANEL_PORT", 8000)
PUBLIC_URL = _text("CLAWPANEL_URL")
ALLOWED_HOSTS = _list("CLAWPANEL_ALLOWED_HOSTS")
PROXIES = _number("CLAWPANEL_PROXIES", 0)
DEBUG = _one_of("CLAWPANEL_DEBUG", "0", "1") == "1"
SECRET_KEY = _text("CLAWPANEL_SECRET_KEY")
ENCRYPTION_KEYS = _list("CLAWPANEL_ENCRYPTION_KEYS")
ADMIN_PASSWORD = _text("CLAWPANEL_ADMIN_PASSWORD")
ADMIN_USER = _text("CLAWPANEL_ADMIN_USER", "admin")
EXECUTOR = _one_of("CLAWPANEL_EXECUTOR", "auto", "docker", "process")
INSTALL = _text("CLAWPANEL_INSTALL")
NODE = _text("CLAWPANEL_NODE")
NODE_SLOTS = _number("CLAWPANEL_NODE_SLOTS", 0)
POISON_DEATHS = _number("CLAWPANEL_POISON_DEATHS", 3)
NODE_LABELS = _pairs("CLAWPANEL_NODE_LABELS")
DOCKER_URL = _text("DOCKER_HOST")
DOCKER_CERTS = Path(_text("DOCKER_CERT_PATH") or "~/.docker").expanduser() if _text("DOCKER_TLS_VERIFY") else None
RUNNER_BASE = _text("CLAWPANEL_RUNNER_BASE")
ISOLATION = _text("CLAWPANEL_ISOLATION")
DEMO_PORT = _number("CLAWPANEL_DEMO_PORT", 8210)
DEMO_SITE = _text("CLAWPANEL_DEMO_SITE")
LOG_LEVEL = _one_of("CLAWPANEL_LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR")
SPIDER_REPO = Path(_text("CLAWPANEL_SPIDER_REPO") or BASE_DIR / "spider_repo").absolute()

BUILD_PREFIXES = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE")
BUILD_NAMES = {"http_proxy", "https_proxy", "no_proxy", "all_proxy"}


def build_environment() -> dict[str, str]:
    """The machine's own words on where packages come from, which the build of an environment may see."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(BUILD_PREFIXES) or name.lower() in BUILD_NAMES
    }
