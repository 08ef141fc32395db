"""A Docker Engine of one's own for tests: data, sockets and, when asked, network apart from the machine's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 60
STOP_SECONDS = 30


def quiet(*command: str, seconds: float = 60) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@dataclass
class Dockerd:
    """`namespace` gives it a network of its own: two engines in one would undo each other's packet rules."""

    work: Path
    namespace: str = ""
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"unix://{self.work / 'docker.sock'}"

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command begins with to run in the engine's network. Not `ip netns exec`: that hides the cgroups."""
        return ("nsenter", f"--net=/run/netns/{self.namespace}") if self.namespace else ()

    def docker(self, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        command = ["docker", "-H", self.url, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False
        )

    def start(self) -> bool:
        """Whether it answers; again after a `kill` it finds what it had."""
        if self.namespace and not Path("/run/netns", self.namespace).exists():
            quiet("ip", "netns", "add", self.namespace)
            quiet(*self.inside, "ip", "link", "set", "lo", "up")
        # containerd dies with the engine, but stays a zombie where process 1 does not bury: its file would be believed.
        for leftover in ("docker.pid", "docker.sock", "exec/containerd/containerd.pid"):
            (self.work / leftover).unlink(missing_ok=True)
        command = [*self.inside, "dockerd", "-H", self.url, *self.options]
        roots = {"--data-root": "data", "--exec-root": "exec", "--pidfile": "docker.pid"}
        command += [f"{option}={self.work / name}" for option, name in roots.items()]
        with (self.work / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.3)
        return self.answers()

    def answers(self) -> bool:
        return quiet("docker", "-H", self.url, "version", "--format", "{{.Server.Version}}", seconds=15)

    def last_words(self) -> str:
        return "\n  ".join((self.work / "dockerd.log").read_text(errors="replace").splitlines()[-5:])

    def kill(self) -> None:
        """At once, containerd with it; the containers go on."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """With everything it has started and mounted; its files are left to the caller."""
        if self.process is None:
            return
        if self.process.poll() is None and self.answers() and (listed := self.docker("ps", "-aq").stdout.split()):
            quiet("docker", "-H", self.url, "rm", "-f", *listed, seconds=120)
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            target = line.split()[1]
            if target.startswith(f"{self.work}/"):
                quiet("umount", "-l", target)
        if shutil.which("ip"):
            if self.namespace:
                quiet("ip", "netns", "delete", self.namespace)
            else:
                quiet("ip", "link", "delete", "clawruns0")
