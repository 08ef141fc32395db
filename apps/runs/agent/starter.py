"""Brings a claimed run to life, or finds the one that lives already."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from django.db import Error, connection

from apps.core.errors import PanelError
from apps.engine.errors import BuildFailed, CreateFailed, EngineError, EngineUnavailable, ImageMissing
from apps.engine.levels import Level
from apps.engine.redact import Redactor
from apps.engine.types import EnvironmentSpec, Handle, Observation, Phase, RunSpec
from apps.runs import leases
from apps.runs.agent.clocks import monotonic_of
from apps.runs.agent.ending import failure
from apps.runs.agent.fence import is_still_ours
from apps.runs.agent.followed import Followed, SpecBroken
from apps.runs.agent.late_names import with_node
from apps.runs.agent.station import Station
from apps.runs.crash import crash_point
from apps.spiders import archive, secrets
from apps.spiders.models import CodeArchive

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 2.0
# A file beside the spools, there from before the first instruction of the spider on.
STARTED = "started"


class CodeMissing(Exception):
    """The code of the version cannot be laid out; the sentence says why."""


def start(station: Station, followed: Followed) -> None:
    """Runs in a pool thread. Whatever goes wrong becomes a reason of the run, or another try later."""
    try:
        _start(station, followed)
    except Error as error:
        logger.warning("%r: the database does not answer: %s", followed, error)
        followed.retry_at = time.monotonic() + AGAIN_SECONDS
        connection.close()
    except EngineUnavailable as error:
        _give_back(station, followed, str(error))
    except BuildFailed as error:
        _fail(followed, "image_build_failed", str(error))
    except ImageMissing as error:
        _fail(followed, "image_missing", str(error))
    except CodeMissing as error:
        _fail(followed, "code_missing", str(error))
    except SpecBroken as error:
        _fail(followed, "param_error", str(error))
    except (CreateFailed, EngineError) as error:
        _fail(followed, "create_failed", str(error))
    except Exception:
        logger.exception("%r could not be started", followed)
        _fail(followed, "create_failed", "An unexpected fault, see the worker's log.")
    finally:
        followed.building = False
        followed.submitted = False
        station.wake_followers()


def _start(station: Station, followed: Followed) -> None:
    revealed = _reveal(followed)
    followed.redactor = Redactor(revealed.values())
    followed.secrets_known = True
    handle = _existing(station, followed)
    if handle is None:
        if followed.started_at is not None or followed.stop_cause or _was_started(followed):
            followed.observation = Observation(Phase.MISSING)
            return
        handle = _create(station, followed, revealed)
        if handle is None:
            return
    _set_going(station, followed, handle)


def _was_started(followed: Followed) -> bool:
    """By a worker that died before it could say so: removed since, it must not run a second time as one attempt."""
    return followed.adopted and (followed.run_dir / STARTED).exists()


def _existing(station: Station, followed: Followed) -> Handle | None:
    if not followed.adopted:
        return None
    return station.executor.find(station.config.install, followed.run_id, followed.attempt, followed.run_dir)


def _create(station: Station, followed: Followed, revealed: dict[str, str]) -> Handle | None:
    """None when it was stopped before there was anything to stop, or is not ours any more."""
    spec = followed.spec
    if not isinstance(spec.get("command"), list) or not spec["command"]:
        raise SpecBroken("The order of this run has no command.")
    followed.building = True
    code_dir = lay_out_code(station.config.home, spec)
    requirements = EnvironmentSpec(str(spec.get("requirements") or ""))
    environment = station.executor.environment(requirements, lambda line: followed.say(line, Level.INFO))
    followed.building = False
    followed.ready_at = time.monotonic()
    followed.environment = environment
    order = _run_spec(station, followed, code_dir, environment, revealed)
    with station.engine_places, followed.starting:
        # A build may take minutes, or this process was frozen: whoever adopted the run may have run it to its end.
        followed.ours_at = 0.0
        if followed.is_over or not is_still_ours(station, followed):
            return None
        crash_point("before-create")
        handle = station.executor.create(order)
        crash_point("created")
        return handle


def _set_going(station: Station, followed: Followed, handle: Handle) -> None:
    with station.engine_places, followed.starting:
        if followed.is_over:
            return
        followed.handle = handle
        seen = station.executor.inspect(handle) if followed.adopted else Observation(Phase.CREATED)
        if seen.phase is Phase.CREATED and not is_still_ours(station, followed):
            return
        if seen.phase is Phase.CREATED and not followed.stop_cause:
            crash_point("before-start")
            followed.run_dir.mkdir(parents=True, exist_ok=True)
            (followed.run_dir / STARTED).touch()
            station.executor.start(handle)
            crash_point("started")
        elif seen.phase is Phase.CREATED:
            # Stopped before its first instruction: there is nothing to wait for.
            station.executor.remove(handle)
            followed.observation = Observation(Phase.MISSING)
            return
    station.data.set()
    mark_running(station, followed, seen)


def mark_running(station: Station, followed: Followed, seen: Observation) -> None:
    """Write down that it runs; safe to repeat."""
    if followed.handle is None:
        return
    now = station.now()
    clocks = followed.clocks
    if followed.started_at is not None:
        if clocks.run_end is None:
            # Adopted: its time limit goes on counting from the start it had under another worker.
            clocks.begin(monotonic_of(followed.started_at, now), paused_seconds=followed.paused_seconds)
        return
    # The engine's clock may be off too: by ours it has started between the claim and now.
    started_at = min(now, max(seen.started_at or now, followed.claimed_at))
    leases.mark_running(
        run_id=followed.run_id,
        attempt=followed.attempt,
        token=followed.token,
        started_at=started_at,
        now=now,
        actor=station.actor,
        ref=followed.handle.ref,
        env=followed.environment,
        total_seconds=followed.total_seconds,
    )
    crash_point("marked-running")
    followed.started_at = started_at
    started = monotonic_of(started_at, now)
    clocks.begin(started)
    if clocks.total_end is None and followed.total_seconds is not None:
        clocks.total_end = started + followed.total_seconds


def lay_out_code(home: Path, spec: dict[str, object]) -> Path:
    """The folder with the version's files, unpacked once per content."""
    digest = str(spec.get("code") or "")
    folder = home / "code" / digest
    if digest and folder.is_dir():
        return folder
    stored = CodeArchive.objects.filter(pk=digest).first()
    if stored is None:
        raise CodeMissing("It is not in the database.")
    try:
        return archive.unpack(bytes(stored.content), digest, home)
    except (PanelError, OSError, ValueError) as error:
        raise CodeMissing(f"It could not be unpacked: {error}") from error


def _reveal(followed: Followed) -> dict[str, str]:
    ids = followed.spec.get("secrets")
    if not isinstance(ids, dict) or not ids:
        return {}
    try:
        return secrets.reveal({str(name): int(number) for name, number in ids.items()})
    except (PanelError, ValueError, TypeError, LookupError) as error:
        raise SpecBroken(f"A secret cannot be read: {error}") from error


def _run_spec(
    station: Station, followed: Followed, code_dir: Path, environment: str, revealed: dict[str, str]
) -> RunSpec:
    spec = followed.spec
    parameters, env = spec.get("parameters"), spec.get("env")
    if not isinstance(parameters, dict) or not isinstance(env, dict) or followed.limits_broken:
        raise SpecBroken("The order of this run cannot be read.")
    command, variables = with_node(spec, station.node.name)
    ours = {"CLAW_DEMO_SITE": station.node.demo_site} if station.node.demo_site else {}
    return RunSpec(
        install=station.config.install,
        run_id=followed.run_id,
        attempt=followed.attempt,
        token=followed.token,
        request_id=followed.request_id,
        spider=str(spec.get("spider", "")),
        command=tuple(command),
        code_dir=code_dir,
        run_dir=followed.run_dir,
        environment=environment,
        params=parameters,
        env={**variables, **ours},
        secrets=revealed,
        limits=followed.limits,
    )


def _fail(followed: Followed, reason: str, sentence: str) -> None:
    if not followed.is_over:
        followed.failure = failure(reason, sentence)


def _give_back(station: Station, followed: Followed, sentence: str) -> None:
    """The engine is away. What may live there is looked for again; what was never started goes back to the queue."""
    station.set_trouble("engine", sentence)
    followed.retry_at = time.monotonic() + AGAIN_SECONDS
    if followed.handle is not None and followed.started_at is None:
        # Whether the start came through is not known: look again, as an adopter would.
        followed.adopted, followed.handle = True, None
    if followed.adopted or followed.handle is not None or followed.is_over or followed.stop_cause:
        return
    followed.given_up = True
    try:
        leases.give_back(
            run_id=followed.run_id,
            attempt=followed.attempt,
            token=followed.token,
            now=station.now(),
            actor=station.actor,
            why=sentence,
        )
    except Error as error:
        logger.warning("%r could not be given back: %s", followed, error)
        followed.given_up = False
        connection.close()
    else:
        station.roster.drop(followed)
