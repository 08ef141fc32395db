"""The only place that opens and closes secrets. Jobs and runs carry ids."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.crypto import decrypt, encrypt
from apps.core.errors import NotFound
from apps.spiders.models import Project, Secret


def keep(*, project: Project, label: str, value: str, by: User | None, now: datetime) -> Secret:
    """Store one secret; there is no changing it, a new value is a new row."""
    secret = Secret(project=project, label=label[:200], ciphertext=encrypt(value), created_at=now, created_by=by)
    secret.save(force_insert=True)
    return secret


def reveal(ids: Mapping[str, int]) -> dict[str, str]:
    """The values of `{name: secret id}`, in the clear: for the worker that starts the run, for nobody else."""
    if not ids:
        return {}
    rows = Secret.objects.in_bulk(list(ids.values()))
    missing = sorted(name for name, pk in ids.items() if pk not in rows)
    if missing:
        raise NotFound(_("These secrets are gone, enter them again: %(names)s.") % {"names": ", ".join(missing)})
    return {name: decrypt(bytes(rows[pk].ciphertext)) for name, pk in ids.items()}
