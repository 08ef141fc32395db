"""The Docker executor: idempotent calls on a container whose name says which attempt it is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any

from docker import APIClient
from docker.errors import APIError, ImageNotFound, NotFound

from apps.engine.builder import ImageBuilder
from apps.engine.docker_api import CONFLICT, connect, create_container, image_details, translated
from apps.engine.errors import CreateFailed, EngineUnavailable, ImageMissing
from apps.engine.executors.docker import profile
from apps.engine.executors.docker.events import watch_events
from apps.engine.executors.docker.instants import instant
from apps.engine.executors.docker.network import RunNetwork
from apps.engine.executors.docker.probe import run_probe
from apps.engine.executors.docker.restart import ended_by_restart
from apps.engine.executors.docker.status import HealthCheck
from apps.engine.executors.docker.usage import Groups, find_groups, read_groups, read_stats
from apps.engine.executors.layout import remove_secrets, run_ids, write_secrets
from apps.engine.harness_copy import install_harness
from apps.engine.settings import EngineSettings
from apps.engine.spool import create_spools
from apps.engine.types import EngineHealth, EnvironmentSpec, Handle, Observation, Phase, RunSpec, Sample, attempt_name

logger = logging.getLogger(__name__)

_PHASES = {
    "created": Phase.CREATED,
    "running": Phase.RUNNING,
    "restarting": Phase.RUNNING,
    "paused": Phase.PAUSED,
    "exited": Phase.EXITED,
    "dead": Phase.EXITED,
    "removing": Phase.EXITED,
}


class DockerExecutor:
    kind = "docker"
    isolated = True

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._network = RunNetwork(settings)
        self._health = HealthCheck(settings, self._network)
        self._builder = ImageBuilder(settings)
        self._client: APIClient | None = None
        self._harness: Path | None = None
        self._cpus = 0
        self._volumes: dict[str, tuple[str, ...]] = {}
        self._groups: dict[str, Groups] = {}
        self._fresh: set[str] = set()  # made by us a moment ago: certain to be created and no more
        self._lock = Lock()

    @property
    def _api(self) -> APIClient:
        """Connected on first use, so that an engine that is down at our start is not the end of us."""
        with self._lock:
            if self._client is None:
                settings = self._settings
                self._client = connect(settings.docker_url, settings.docker_timeout, certs=settings.docker_certs)
            return self._client

    def gateway(self) -> str:
        """Where the demo site must listen for runs to reach it: this host's address on their bridge."""
        if not self._network.gateway:
            self._network.ensure(self._api)
        return self._network.gateway

    def prepare(self) -> None:
        (self._settings.home / "runs").mkdir(parents=True, exist_ok=True)
        self._harness_dir()
        self._network.ensure(self._api)
        with translated():
            self._cpus = int(self._api.info().get("NCPU", 0))

    def health(self) -> EngineHealth:
        return self._health.ask()

    def probe(self) -> tuple[str, ...]:
        return run_probe(self._api, self._settings, self._builder, self._network)

    def environment(self, spec: EnvironmentSpec, say: Callable[[str], None]) -> str:
        return self._builder.environment(spec, say)

    def create(self, spec: RunSpec) -> Handle:
        uid, gid = run_ids(self._settings)
        volumes = self._volumes_of(spec.environment)
        if not spec.code_dir.is_dir():
            raise CreateFailed(f"The spider's code is not at {spec.code_dir}.")
        create_spools(spec.run_dir, uid, gid)
        secrets = self._settings.secrets_dir(spec.name)
        config = profile.container_config(
            spec, self._settings, harness=self._harness_dir(), secrets=secrets, volumes=volumes, cpus=self._cpus
        )
        write_secrets(secrets, spec.secrets, uid, gid)
        try:
            with translated():
                ref = self._create(config, spec.name)
            if not ref:
                return self._adopt(spec)
            self._fresh.add(ref)
            return self._handle(spec.name, spec.run_id, spec.attempt, ref, spec.run_dir)
        except (CreateFailed, ImageMissing):
            remove_secrets(secrets)
            raise

    def _create(self, config: dict[str, Any], name: str) -> str:
        """The new container's id; empty when the name is taken."""
        try:
            return create_container(self._api, config, name)
        except ImageNotFound as error:
            self._volumes.pop(config["Image"], None)
            self._builder.forget(config["Image"])
            raise ImageMissing(
                f"The image {config['Image']} is not there any more; the next start builds it."
            ) from error
        except APIError as error:
            if error.status_code == CONFLICT:
                return ""
            raise

    def _adopt(self, spec: RunSpec) -> Handle:
        found = self.find(spec.install, spec.run_id, spec.attempt, spec.run_dir)
        if found is None:
            raise CreateFailed(
                f"A container named {spec.name} exists that is not ours: it was left alone. Remove or rename it."
            )
        return found

    def start(self, handle: Handle) -> None:
        fresh = handle.ref in self._fresh
        self._fresh.discard(handle.ref)
        if not fresh and self.inspect(handle).phase is not Phase.CREATED:
            return
        try:
            with translated():
                self._api.start(handle.ref)
        except CreateFailed:
            if self.inspect(handle).phase is Phase.CREATED:
                raise
            # somebody else started it a moment before us

    def find(self, install: str, run_id: int, attempt: int, run_dir: Path) -> Handle | None:
        name = attempt_name(install, run_id, attempt)
        details = self._details(name)
        if details is None:
            return None
        labels = details["Config"].get("Labels") or {}
        wanted = {
            profile.LABEL_INSTALL: install,
            profile.LABEL_RUN: str(run_id),
            profile.LABEL_ATTEMPT: str(attempt),
        }
        if any(labels.get(key) != value for key, value in wanted.items()):
            return None
        return self._handle(name, run_id, attempt, str(details["Id"]), run_dir)

    @staticmethod
    def _handle(name: str, run_id: int, attempt: int, ref: str, run_dir: Path) -> Handle:
        return Handle(name=name, run_id=run_id, attempt=attempt, ref=ref, run_dir=run_dir)

    def inspect(self, handle: Handle) -> Observation:
        details = self._details(handle.ref)
        if details is None:
            return Observation(Phase.MISSING)
        state = details["State"]
        phase = _PHASES.get(state["Status"], Phase.RUNNING)
        over = phase is Phase.EXITED
        seen = Observation(
            phase,
            exit_code=int(state["ExitCode"]) if over else None,
            oom_killed=bool(state.get("OOMKilled")),
            started_at=instant(state.get("StartedAt")),
            finished_at=instant(state.get("FinishedAt")) if over else None,
            error=str(state.get("Error") or ""),
        )
        return replace(seen, engine_restarted=True) if ended_by_restart(self._api, seen) else seen

    def _details(self, ref: str) -> dict[str, Any] | None:
        with translated():
            try:
                details: dict[str, Any] = self._api.inspect_container(ref)
            except NotFound:
                return None
            return details

    def terminate(self, handle: Handle) -> None:
        self._signal(handle, "SIGTERM")

    def kill(self, handle: Handle) -> None:
        self._signal(handle, "SIGKILL")

    def _signal(self, handle: Handle, name: str) -> None:
        for _ in range(2):
            try:
                with translated():
                    self._api.kill(handle.ref, name)
            except CreateFailed:
                # Not running any more, or frozen: a frozen container takes no signal until it is thawed.
                if self.inspect(handle).phase is not Phase.PAUSED:
                    return
                self.resume(handle)
            else:
                return

    def pause(self, handle: Handle) -> None:
        with translated():
            self._unless_refused(self._api.pause, handle.ref)

    def resume(self, handle: Handle) -> None:
        with translated():
            self._unless_refused(self._api.unpause, handle.ref)

    @staticmethod
    def _unless_refused(call: Callable[[str], object], ref: str) -> None:
        """Already so, already over or gone: what was wanted is the case, or `inspect` will say what is."""
        try:
            call(ref)
        except APIError as error:
            if error.is_server_error() and not {"paused", "running"} & set(str(error.explanation).split()):
                raise

    def sample(self, handle: Handle) -> Sample | None:
        groups = self._groups.get(handle.ref)
        if groups is None:
            details = self._details(handle.ref)
            if details is None or not details["State"]["Running"]:
                return None
            groups = find_groups(int(details["State"]["Pid"]), handle.ref)
            if groups is None:
                return read_stats(self._api, handle.ref)
            self._groups[handle.ref] = groups
        sample = read_groups(groups)
        if sample is None:
            self._groups.pop(handle.ref, None)
        return sample

    def remove(self, handle: Handle) -> None:
        self._groups.pop(handle.ref, None)
        self._fresh.discard(handle.ref)
        try:
            with translated():
                self._api.remove_container(handle.ref, force=True, v=True)
        except CreateFailed:
            # Gone, or being removed by another call.
            if self.inspect(handle).phase not in (Phase.MISSING, Phase.EXITED):
                raise EngineUnavailable(f"The container {handle.name} could not be removed yet.") from None
        remove_secrets(self._settings.secrets_dir(handle.name))

    def forget(self, install: str, run_id: int, attempt: int) -> None:
        remove_secrets(self._settings.secrets_dir(attempt_name(install, run_id, attempt)))

    def list(self, install: str) -> list[Handle]:
        with translated():
            found = self._api.containers(all=True, filters={"label": [f"{profile.LABEL_INSTALL}={install}"]})
        handles = []
        for row in found:
            run, attempt = row["Labels"].get(profile.LABEL_RUN, ""), row["Labels"].get(profile.LABEL_ATTEMPT, "")
            if run.isdecimal() and attempt.isdecimal() and row["Names"]:
                name = str(row["Names"][0]).lstrip("/")
                run_dir = self._settings.run_dir(int(run), int(attempt))
                handles.append(self._handle(name, int(run), int(attempt), str(row["Id"]), run_dir))
        return handles

    def watch(self, wake: Callable[[str], None], stop: Event) -> None:
        watch_events(self._settings, wake, stop)

    def _harness_dir(self) -> Path:
        if self._harness is None or not self._harness.is_dir():
            self._harness = install_harness(self._settings.home)
        return self._harness

    def _volumes_of(self, image: str) -> tuple[str, ...]:
        """Cached: our tags name their content by digest."""
        if image not in self._volumes:
            details = image_details(self._api, image)
            if details is None:
                self._builder.forget(image)
                raise ImageMissing(f"The image {image} is not there.")
            self._volumes[image] = tuple(details["Config"].get("Volumes") or ())
        return self._volumes[image]
