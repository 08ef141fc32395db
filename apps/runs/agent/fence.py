"""Whoever has lost a run writes nothing more and leaves its container alone."""

from __future__ import annotations

import logging
import time

from django.db import Error, connection

from apps.runs import leases
from apps.runs.agent.followed import Followed
from apps.runs.agent.station import ASK_AFTER, Station

logger = logging.getLogger(__name__)


def is_still_ours(station: Station, followed: Followed) -> bool:
    """Asked before a container is touched: this process may have been frozen, and the run adopted by another.

    Without an answer we act for a while all the same, for nobody can adopt without the database.
    """
    asked = time.monotonic()
    if asked - followed.ours_at < ASK_AFTER:
        return True
    try:
        ours = leases.is_ours(followed.run_id, followed.token)
    except Error:
        connection.close()
        return station.may_act
    if ours:
        followed.ours_at = asked
    else:
        fence_off(station, followed)
    return ours


def fence_off(station: Station, followed: Followed) -> None:
    """Follow it no more, and say so once."""
    if not station.roster.drop(followed) or followed.given_up:
        return
    logger.warning("%r is not ours any more: it is left alone", followed)
    try:
        leases.note_fenced(
            run_id=followed.run_id,
            attempt=followed.attempt,
            worker=station.config.worker,
            now=station.now(),
            actor=station.actor,
        )
    except Error as error:
        logger.info("that %r was lost could not be written down: %s", followed, error)
        connection.close()
