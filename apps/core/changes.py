"""The log of changes, which the admin shows too: who changed what."""

from __future__ import annotations

import logging

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

from apps.core.actors import Actor

logger = logging.getLogger(__name__)

__all__ = ["ADDITION", "CHANGE", "DELETION", "note_change"]


def note_change(what: Model, by: Actor, message: str, flag: int = CHANGE) -> None:
    """`message` is a code, sometimes with a value after a colon: pages put it in the reader's words."""
    logger.info("%s %s: %s by %s", what._meta.model_name, what, message, by)
    if by.user_id is None:
        return
    LogEntry.objects.create(
        user_id=by.user_id,
        content_type=ContentType.objects.get_for_model(type(what)),
        object_id=str(what.pk),
        object_repr=str(what)[:200],
        action_flag=flag,
        change_message=message,
    )
