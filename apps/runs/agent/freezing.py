"""Runs that stand still: because a person wants it, or because they write faster than can be stored."""

from __future__ import annotations

import logging
import time

from apps.core.actors import SYSTEM
from apps.engine.types import Handle, Observation, Phase
from apps.runs import leases, services
from apps.runs.agent.fence import is_still_ours
from apps.runs.agent.followed import Followed
from apps.runs.agent.station import Station
from apps.runs.crash import crash_point
from apps.runs.models import Run

logger = logging.getLogger(__name__)


def hold(station: Station, followed: Followed, handle: Handle, seen: Observation) -> None:
    """Freeze or let go, then write down what is proven. Only a pause that was asked for is a state of the run."""
    behind = _is_behind(station, followed, seen)
    wanted = followed.pause_wanted or behind
    if wanted and seen.phase is Phase.RUNNING and is_still_ours(station, followed):
        if behind:
            logger.info("%r is held back, %d bytes are not stored yet", followed, followed.behind)
        station.executor.pause(handle)
        crash_point("frozen")
        seen = station.executor.inspect(handle)
    elif not wanted and seen.phase is Phase.PAUSED and is_still_ours(station, followed):
        station.executor.resume(handle)
        crash_point("thawed")
        seen = station.executor.inspect(handle)
    if followed.pause_wanted:
        if seen.phase is Phase.PAUSED and followed.paused_at is None:
            _paused(station, followed)
    elif followed.paused_at is not None and (behind or seen.phase is Phase.RUNNING):
        _resumed(station, followed)


def note_resumed(station: Station, followed: Followed) -> None:
    """It went on and ended before anybody had seen it run again."""
    if followed.paused_at is not None and not followed.pause_wanted and not followed.stop_cause:
        _resumed(station, followed)


def end_overlong_pause(station: Station, followed: Followed) -> None:
    """A pause that nobody ends holds memory and a place for ever."""
    if not followed.pause_wanted or not followed.clocks.pause_is_over(time.monotonic()):
        return
    run = Run.objects.filter(pk=followed.run_id, token=followed.token).first()
    if run is None:
        return
    try:
        services.request_resume(run=run, by=SYSTEM, now=station.now())
    except services.NotPossible:
        logger.info("%r is paused no more", followed)
    followed.pause_wanted = False


def _is_behind(station: Station, followed: Followed, seen: Observation) -> bool:
    frozen = seen.phase is Phase.PAUSED
    return followed.behind > station.config.most_behind or (frozen and followed.behind >= station.config.caught_up)


def _paused(station: Station, followed: Followed) -> None:
    followed.clocks.pause(time.monotonic())
    followed.paused_at = leases.mark_paused(
        run_id=followed.run_id, token=followed.token, now=station.now(), actor=station.actor
    )
    crash_point("paused")


def _resumed(station: Station, followed: Followed) -> None:
    if followed.paused_at is not None:
        leases.mark_resumed(
            run_id=followed.run_id,
            token=followed.token,
            paused_at=followed.paused_at,
            now=station.now(),
            actor=station.actor,
        )
    followed.paused_at = None
    followed.clocks.resume(time.monotonic())
