"""Every environment variable the panel reads, in one place. docs/configuration.md is checked against this file."""

from __future__ import annotations

from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

HOME = Path(env.str("CLAWPANEL_HOME", default=str(BASE_DIR / "var"))).absolute()
DATABASE_URL = env.str("DATABASE_URL", default="")
REDIS_URL = env.str("REDIS_URL", default="")
BIND = env.str("CLAWPANEL_BIND", default="127.0.0.1")
PORT = env.int("CLAWPANEL_PORT", default=8000)
PUBLIC_URL = env.str("CLAWPANEL_URL", default="")
ALLOWED_HOSTS = env.list("CLAWPANEL_ALLOWED_HOSTS", default=[])
DEBUG = env.bool("CLAWPANEL_DEBUG", default=False)
SECRET_KEY = env.str("CLAWPANEL_SECRET_KEY", default="")
ENCRYPTION_KEYS = env.list("CLAWPANEL_ENCRYPTION_KEYS", default=[])
ADMIN_PASSWORD = env.str("CLAWPANEL_ADMIN_PASSWORD", default="")
ADMIN_USER = env.str("CLAWPANEL_ADMIN_USER", default="admin")
EXECUTOR = env.str("CLAWPANEL_EXECUTOR", default="auto")
INSTALL = env.str("CLAWPANEL_INSTALL", default="")
NODE = env.str("CLAWPANEL_NODE", default="")
NODE_SLOTS = env.int("CLAWPANEL_NODE_SLOTS", default=0)
DOCKER_URL = env.str("DOCKER_HOST", default="")
RUNNER_BASE = env.str("CLAWPANEL_RUNNER_BASE", default="")
ISOLATION = env.str("CLAWPANEL_ISOLATION", default="")
PROCESS_USER = env.str("CLAWPANEL_PROCESS_USER", default="")
DEMO_PORT = env.int("CLAWPANEL_DEMO_PORT", default=8210)
DEMO_SITE = env.str("CLAWPANEL_DEMO_SITE", default="")
LOG_LEVEL = env.str("CLAWPANEL_LOG_LEVEL", default="INFO")
SPIDER_REPO = Path(env.str("CLAWPANEL_SPIDER_REPO", default=str(BASE_DIR / "spider_repo"))).absolute()
