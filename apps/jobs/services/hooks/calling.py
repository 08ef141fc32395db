"""A call of a webhook: who called is known by nothing but a token, and a signature where one is asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.brakes import seconds_to_wait
from apps.core.errors import Invalid, NotFound, PanelError
from apps.core.json_text import parse_json
from apps.core.schema_forms import coerced, secret_names, split_secrets, with_defaults
from apps.core.schema_forms.validation import unsafe
from apps.jobs.models import Hook
from apps.jobs.services.hooks.mapping import Taken, taken_from
from apps.jobs.services.hooks.secrecy import digest_of, is_signed
from apps.jobs.services.launching import Launch
from apps.jobs.services.parameters import needed_version
from apps.jobs.services.running import launch
from apps.runs.models import Run
from apps.runs.services import KeyUsed
from apps.runs.states import Trigger
from apps.spiders.secrets import reveal

logger = logging.getLogger(__name__)

BODY_BYTES = 256 * 1024
BODY_DEPTH = 32
# Calls that find no hook, from one address: whoever mistypes is told so, whoever tries is slowed down.
MISSES_A_MINUTE = 60
MOST_NAMED = 20
LONGEST_DELIVERY = 150
_DELIVERIES = ("Idempotency-Key", "X-GitHub-Delivery")
_USE_NOTED_EVERY = timedelta(minutes=1)


class NoSuchHook(NotFound):
    """No such address, one that was revoked, or a wrong signature: not told apart."""


class TooManyCalls(PanelError):
    code = "throttled"
    status = 429

    def __init__(self, seconds: float) -> None:
        super().__init__(_("Too many calls. Try again in %(n)d seconds.") % {"n": seconds + 1})
        self.seconds = int(seconds) + 1


class BodyTooLarge(PanelError):
    code = "too_large"
    status = 413


class BadCall(Invalid):
    """The caller is known, what it sent cannot be taken; `fields` are places in its body, or headers."""

    status = 422


@dataclass(frozen=True, slots=True)
class Called:
    """`new` is False when the delivery had come before; `taken` says what of the body was of use."""

    run: Run
    new: bool
    taken: Taken


def call_hook(*, token: str, body: bytes, headers: Mapping[str, str], now: datetime, address: str = "") -> Called:
    """Run the hook's job. `headers` are found by any spelling, `address` is where the caller is.

    The same delivery again answers the run of then.
    """
    if len(body) > BODY_BYTES:
        raise BodyTooLarge(_("The body is larger than %(kib)d KiB.") % {"kib": BODY_BYTES // 1024})
    hook = _hook_for(token, body, headers, address=address, now=now)
    if seconds := seconds_to_wait(f"hook:{hook.pk}", most=hook.per_minute, now=now):
        raise TooManyCalls(seconds)
    _note_use(hook, now)
    delivery = _delivery(headers)
    try:
        called = _launched(hook, _read(body), delivery, now=now)
    except Invalid as error:
        raise BadCall(error.message, fields=_in_the_body(error.fields, hook.mapping)) from error
    logger.info("webhook %s: run %s, %s", hook.pk, called.run.pk, "new" if called.new else "of an earlier delivery")
    return called


def _hook_for(token: str, body: bytes, headers: Mapping[str, str], *, address: str, now: datetime) -> Hook:
    rows = Hook.objects.select_related("job__project", "job__spider__current_version", "job__version")
    # Found by the digest: how long that takes says nothing about the token.
    hook = rows.filter(token_digest=digest_of(token=token), revoked_at=None).first()
    if hook is not None and is_signed(hook=hook, body=body, headers=headers):
        return hook
    # Counted after the look: calls that are right must not suffer from the wrong ones of their neighbours.
    if seconds := seconds_to_wait(f"hook-miss:{address}", most=MISSES_A_MINUTE, now=now):
        raise TooManyCalls(seconds)
    raise NoSuchHook(_("There is no such webhook."))


def _note_use(hook: Hook, now: datetime) -> None:
    """At most once a minute: a busy caller must not write on every call."""
    before = now - _USE_NOTED_EVERY
    if hook.last_used_at is None or hook.last_used_at < before:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=before)
        Hook.objects.filter(stale, pk=hook.pk).update(last_used_at=now)


def _delivery(headers: Mapping[str, str]) -> str | None:
    for name in _DELIVERIES:
        given = headers.get(name)
        if given is None:
            continue
        if not 0 < len(given) <= LONGEST_DELIVERY or not given.isprintable():
            sentence = _("A delivery is named by 1 to %(most)d printable characters.") % {"most": LONGEST_DELIVERY}
            raise BadCall(sentence, fields={name: [sentence]})
        return given
    return None


def _read(body: bytes) -> dict[str, Any]:
    """The object in the body; nothing at all is an empty one."""
    if not body.strip():
        return {}
    try:
        value = parse_json(body.decode(), max_bytes=BODY_BYTES, max_depth=BODY_DEPTH)
    except UnicodeDecodeError as error:
        raise BadCall(_("The body is not UTF-8 (byte %(position)s).") % {"position": error.start}) from error
    except Invalid as error:
        raise BadCall(_("The body is not JSON that can be taken: %(why)s.") % {"why": error.message}) from error
    if not isinstance(value, dict):
        raise BadCall(_("The body must be a JSON object."))
    if faults := unsafe(value):
        raise BadCall(next(iter(faults.values()))[0], fields=faults)
    return value


def _launched(hook: Hook, body: Mapping[str, Any], delivery: str | None, *, now: datetime) -> Called:
    schema = needed_version(hook.job).parameter_schema
    taken = taken_from(body=body, mapping=hook.mapping, known=schema.get("properties", {}).keys())
    values = coerced(schema, taken.values)
    # Null would take a secret of the job away.
    if emptied := [name for name in secret_names(schema) if name in values and values[name] is None]:
        sentence = _("A secret is a text.")
        raise Invalid(sentence, fields={f"parameters.{name}": [sentence] for name in emptied})
    key = None if delivery is None else f"hook:{hook.pk}:{delivery}"
    wanted = Launch(
        job=hook.job, trigger=Trigger.WEBHOOK, parameters=values, literal=tuple(values), idempotency_key=key
    )
    try:
        run, new = launch(wanted=wanted, by=Actor("hook", hook.name), now=now)
    except KeyUsed:
        run, new = _run_of_then(hook, schema, values, key), False
    return Called(run, new, taken)


def _run_of_then(hook: Hook, schema: Mapping[str, Any], values: Mapping[str, Any], key: str | None) -> Run:
    """A delivery that comes again after the job was changed is the same delivery, if its body is the same."""
    run = Run.objects.get(project_id=hook.job.project_id, idempotency_key=key)
    typed = split_secrets(schema, values)[1]
    kept = {name: pk for name, pk in (run.spec.get("secrets") or {}).items() if name in typed}
    then, whole = {**run.spec["parameters"], **reveal(kept)}, {**with_defaults(schema, values), **typed}
    if run.job_id != hook.job_id or any(name not in then or then[name] != whole[name] for name in values):
        raise KeyUsed(_("This delivery came before with another body; it started run %(id)s.") % {"id": run.pk})
    return run


def _in_the_body(fields: Mapping[str, list[str]], mapping: Mapping[str, str]) -> dict[str, list[str]]:
    """The services say `parameters.<name>.<path>`; the caller looks for the place in its own body."""
    places = {}
    for field, sentences in fields.items():
        name, dot, rest = field.removeprefix("parameters.").partition(".")
        places[f"{mapping.get(name, name)}{dot}{rest}" if field.startswith("parameters.") else field] = sentences
    return places
