"""Webhooks: addresses by which other programs run a job without an account."""

from apps.jobs.services.hooks.calling import BodyTooLarge, Called, NoSuchHook, TooManyCalls, call_hook
from apps.jobs.services.hooks.keeping import (
    HookNameTaken,
    HookRevoked,
    TooManyHooks,
    create_hook,
    renew_token,
    revoke_hook,
)

__all__ = [
    "BodyTooLarge",
    "Called",
    "HookNameTaken",
    "HookRevoked",
    "NoSuchHook",
    "TooManyCalls",
    "TooManyHooks",
    "call_hook",
    "create_hook",
    "renew_token",
    "revoke_hook",
]
