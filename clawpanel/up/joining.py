"""What has to be true before a machine joins: asked of the database and the broker that it was given."""

from __future__ import annotations

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from apps.core.crypto import Undecryptable, decrypt
from apps.core.errors import Invalid
from apps.runs import places
from apps.runs.agent import joining
from apps.runs.models import Node
from apps.spiders.models import Secret
from clawpanel.refusal import CannotStart

ASK_FOR = "`manage.py node_settings` on the panel's machine prints what a node needs."


def same_version(name: str) -> str:
    """Refuses another version than the database's; "" or a warning.

    A node that was there before may come back with the older one: while a new version is rolled out both run.
    """
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        raise CannotStart(f"The database cannot be read: {str(error).strip()}") from error
    if waiting:
        raise CannotStart(
            f"The database lacks {len(waiting)} migrations of this version: bring the panel up to date first "
            "(deploy/up, or manage.py prepare), or join with the version the panel has."
        )
    ours = {app for app, _ in executor.loader.disk_migrations}
    newer = sorted(key for key in executor.loader.applied_migrations if key[0] in ours) if ours else []
    unknown = [f"{app}.{step}" for app, step in newer if (app, step) not in executor.loader.disk_migrations]
    if not unknown:
        return ""
    sentence = f"The panel is newer than this version: its database has {unknown[-1]}. Update this machine."
    if not Node.objects.filter(name=name).exists():
        raise CannotStart(sentence)
    return sentence


def same_keys() -> None:
    """A node that cannot open the secrets would fail each run that has one."""
    newest = Secret.objects.order_by("-pk").first()
    if newest is None:
        return
    try:
        decrypt(bytes(newest.ciphertext))
    except Undecryptable as error:
        raise CannotStart(
            f"CLAWPANEL_ENCRYPTION_KEYS are not the panel's: they open none of its secrets. {ASK_FOR}"
        ) from error


def free_name(name: str) -> None:
    taken = joining.rival(name)
    if taken is not None:
        raise CannotStart(
            f"The name {name} belongs to a living worker of another machine. Set CLAWPANEL_NODE to another name, "
            f"or stop that worker and try again in {joining.LIVING.seconds} s."
        )


def good_labels() -> None:
    try:
        places.check_labels(settings.CLAWPANEL_NODE_LABELS)
    except Invalid as error:
        raise CannotStart(f"CLAWPANEL_NODE_LABELS: {error}") from error
