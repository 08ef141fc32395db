"""Machines of their own on this one: each with a Docker Engine in its own network, a home and a worker."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from django.conf import settings
from django.db import connection

from clawpanel.up.services import WORKER_THREADS
from deploy.dockerd import Dockerd
from tests.journeys.worker import ROOT

TLS_PORT = 2376
FOR_BOTH_ENDS = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass
class Machine:
    """`kill` is what a power cut looks like from outside, but for the containers: they go on, which is worse."""

    name: str
    engine: Dockerd
    home: Path
    more: dict[str, str] = field(default_factory=dict)
    worker: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.home / "worker.log").read_text(errors="replace")

    def start_worker(self) -> None:
        database = urlunsplit(
            urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
        )
        environment = {
            **os.environ,
            "DATABASE_URL": database,
            "DOCKER_HOST": self.engine.url,
            "CLAWPANEL_HOME": str(self.home),
            "CLAWPANEL_EXECUTOR": "docker",
            "CLAWPANEL_NODE": self.name,
            "CLAWPANEL_NODE_SLOTS": "4",
            "CLAWPANEL_NODE_LABELS": f"machine={self.name}",
            "CELERY_SKIP_CHECKS": "1",
            **self.more,
        }
        command = [*self.engine.inside, sys.executable, "-m", "celery", "--quiet", "-A", "clawpanel", "worker"]
        command += ["-P", "threads", "-c", str(WORKER_THREADS), "-Q", f"control,node.{self.name}"]
        command += ["-n", f"worker@{self.name}", "--without-gossip", "--without-mingle", "-l", "INFO"]
        with (self.home / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill_worker(self) -> None:
        if self.worker is not None and self.worker.poll() is None:
            os.killpg(self.worker.pid, signal.SIGKILL)
            self.worker.wait()

    def kill(self) -> None:
        self.kill_worker()
        self.engine.kill()

    def come_back(self) -> None:
        assert self.engine.start(), self.engine.last_words()
        self.start_worker()

    def containers(self) -> set[str]:
        """Names of what it has of this install, running or not."""
        label = f"label=clawpanel.install={settings.CLAWPANEL_INSTALL}"
        return set(self.engine.docker("ps", "-a", "--filter", label, "--format", "{{.Names}}").stdout.split())

    def folders(self) -> set[str]:
        """Of runs, made to look old: what is left over is cleared after a while only."""
        found = set()
        for folder in (self.home / "runs").iterdir():
            with contextlib.suppress(FileNotFoundError):
                os.utime(folder, (0, 0))
                found.add(folder.name)
        return found


def write_certificates(folder: Path) -> None:
    """One certificate for both ends, which trust nothing but it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "engine")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    made = made.add_extension(x509.ExtendedKeyUsage(FOR_BOTH_ENDS), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    for file in ("ca.pem", "cert.pem"):
        (folder / file).write_bytes(signed)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)


@contextlib.contextmanager
def machine(name: str, subnet: int, image: str, *, tls: bool = False) -> Iterator[Machine]:
    """An engine that runs and has the image; no worker yet. With `tls` the worker speaks to it by TCP."""
    # Where temporary folders lie on memory a Docker data root does not fit, and overlay does not work on overlay.
    parent = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
    work, home = (Path(tempfile.mkdtemp(prefix=f"claw-{what}-", dir=parent)) for what in ("engine", "home"))
    home.chmod(0o755)
    options: tuple[str, ...] = (f"--bip=172.30.{subnet}.1/24", "--live-restore")
    more = {}
    if tls:
        write_certificates(work)
        options += ("-H", f"tcp://127.0.0.1:{TLS_PORT}", "--tlsverify", f"--tlscacert={work / 'ca.pem'}")
        options += (f"--tlscert={work / 'cert.pem'}", f"--tlskey={work / 'key.pem'}")
        more = {
            "DOCKER_HOST": f"tcp://127.0.0.1:{TLS_PORT}",
            "DOCKER_TLS_VERIFY": "1",
            "DOCKER_CERT_PATH": str(work),
        }
    made = Machine(name, Dockerd(work, f"claw-{os.getpid()}-{name}", options), home, more)
    try:
        assert made.engine.start(), made.engine.last_words()
        give_image(image, made.engine)
        yield made
    finally:
        made.kill_worker()
        if not made.engine.answers():
            made.engine.start()
        made.engine.stop()
        for folder in (work, home):
            shutil.rmtree(folder, ignore_errors=True)


def give_image(image: str, engine: Dockerd) -> None:
    """From the engine of the tests: there may be no registry in reach."""
    saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
    loaded = subprocess.run(
        ["docker", "-H", engine.url, "load"], stdin=saved.stdout, capture_output=True, text=True, check=False
    )
    if saved.stdout is not None:
        saved.stdout.close()
    assert (saved.wait(), loaded.returncode) == (0, 0), loaded.stderr
