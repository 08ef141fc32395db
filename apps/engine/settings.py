"""What an executor needs to know of its install: handed in, never read from the environment here."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

RUN_UID = 64321
DEFAULT_BASE = "python:3.12-slim"
REPOSITORY = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`pip_env` holds the host's PIP_*/UV_*/SSL_* settings that a build may see; `build_network` is Docker's word."""

    install: str
    home: Path
    docker_url: str = ""
    docker_certs: Path | None = None
    docker_timeout: int = 10
    runner_base: str = ""
    runner_context: Path = REPOSITORY / "deploy" / "images" / "runner"
    demo_address: str = ""
    run_uid: int = RUN_UID
    pip_env: Mapping[str, str] = field(default_factory=dict)
    # Not "host": a package that is built runs code, and the host's own services are none of its business.
    build_network: str = "default"
    network: str = "clawpanel-runs"
    bridge: str = "clawruns0"
    secrets_root: Path | None = None

    @property
    def base(self) -> str:
        return self.runner_base or DEFAULT_BASE

    def run_dir(self, run_id: int, attempt: int) -> Path:
        return self.home / "runs" / f"{run_id}-{attempt}"

    def secrets_dir(self, name: str) -> Path:
        """Memory where there is some, so that a secret is never written to a disk."""
        root = self.secrets_root
        if root is None:
            shared = Path("/dev/shm")  # noqa: S108 - a private folder is made below it
            root = shared if shared.is_dir() else Path(tempfile.gettempdir())
        return root / f"claw-{self.install}" / name
