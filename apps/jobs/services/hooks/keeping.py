"""Making, renewing and revoking webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.contrib.admin.models import ADDITION
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.changes import note_change
from apps.core.errors import Conflict, Invalid, NotFound
from apps.jobs.models import Hook, Job
from apps.jobs.selectors import version_of
from apps.jobs.services.hooks.mapping import mapping_faults
from apps.jobs.services.hooks.secrecy import give_secrets
from apps.jobs.services.locking import locked_job

MOST_HOOKS = 50
MOST_A_MINUTE = 6000


class HookNameTaken(Conflict):
    code = "hook_name_taken"


class TooManyHooks(Conflict):
    code = "too_many_hooks"


class HookRevoked(Conflict):
    code = "hook_revoked"


@transaction.atomic
def create_hook(
    *,
    job: Job,
    by: Actor,
    now: datetime,
    name: str,
    kind: str = Hook.Kind.URL,
    mapping: Mapping[str, str] | None = None,
    per_minute: int = 60,
) -> tuple[Hook, str, str]:
    """A new webhook, the token of its address, and the key of its signatures ("" where there are none).

    Neither is kept: they can be shown this once only.
    """
    locked = locked_job(job)
    hook = Hook(job=locked, kind=kind, per_minute=per_minute, created_by_id=by.user_id, created_at=now)
    hook.name, hook.mapping = name.strip(), dict(mapping or {})
    _check(hook)
    # A revoked one has no use but to be looked at; its name is free again.
    Hook.objects.filter(job=locked, name=hook.name, revoked_at__isnull=False).delete()
    if Hook.objects.filter(job=locked, revoked_at=None).count() >= MOST_HOOKS:
        raise TooManyHooks(_("A job has at most %(most)d webhooks. Revoke one first.") % {"most": MOST_HOOKS})
    token, key = give_secrets(hook=hook)
    try:
        with transaction.atomic():
            hook.save(force_insert=True)
    except IntegrityError as error:
        message = _("This job already has a webhook named “%(name)s”.") % {"name": hook.name}
        raise HookNameTaken(message, fields={"name": [message]}) from error
    note_change(hook, by, "hook_created", ADDITION)
    return hook, token, key


def _check(hook: Hook) -> None:
    faults: dict[str, list[str]] = {}
    if not 0 < len(hook.name) <= 100 or not hook.name.isprintable():
        faults["name"] = [_("Give the webhook a name of 1 to 100 printable characters.")]
    if hook.kind not in Hook.Kind.values:
        faults["kind"] = [_("Choose one of: %(choices)s.") % {"choices": ", ".join(Hook.Kind.values)}]
    if not 1 <= hook.per_minute <= MOST_A_MINUTE:
        faults["per_minute"] = [_("Enter a number from 1 to %(most)d.") % {"most": MOST_A_MINUTE}]
    version = version_of(hook.job)
    known = version.parameter_schema.get("properties", {}).keys() if version else ()
    faults |= mapping_faults(mapping=hook.mapping, known=known)
    if faults:
        raise Invalid(next(iter(faults.values()))[0], fields=faults)


def _locked(hook: Hook) -> Hook:
    found = Hook.objects.select_for_update(of=("self",)).filter(pk=hook.pk).first()
    if found is None:
        raise NotFound(_("There is no such webhook."))
    return found


@transaction.atomic
def revoke_hook(*, hook: Hook, by: Actor, now: datetime) -> None:
    """From now on its address is unknown. Twice is once."""
    own = _locked(hook)
    if own.revoked_at is None:
        Hook.objects.filter(pk=own.pk).update(revoked_at=now)
        note_change(own, by, "hook_revoked")
    hook.refresh_from_db()


@transaction.atomic
def renew_token(*, hook: Hook, by: Actor, now: datetime) -> tuple[Hook, str, str]:
    """Another address and key in place of those that may have become known; the old ones are dead at once."""
    own = _locked(hook)
    if own.revoked_at is not None:
        raise HookRevoked(_("This webhook has been revoked. Make a new one."))
    token, key = give_secrets(hook=own)
    own.save(update_fields=["token_digest", "token_prefix", "sealed_key"])
    note_change(own, by, "hook_renewed")
    return own, token, key
