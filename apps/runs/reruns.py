"""A run once more, with other parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.core.actors import Actor
from apps.core.background import enqueue
from apps.core.errors import Invalid
from apps.core.schema_forms import secret_names, split_secrets, validate, with_defaults
from apps.core.templating import each_text
from apps.runs.models import Run
from apps.runs.orders import order_of, unfilled_parameters
from apps.runs.services import request_run
from apps.runs.states import Trigger
from apps.spiders.secrets import keep

MAX_SECRET_BYTES = 64 * 1024
# How a secret that is set is shown; sent back it means "as it was".
SET = {"set": True}


@transaction.atomic
def rerun_changed(
    *,
    run: Run,
    by: Actor,
    now: datetime,
    trigger: Trigger,
    parameters: Mapping[str, Any],
    secrets: Mapping[str, str | None] | None = None,
    complete: bool = False,
) -> Run:
    """The order with `parameters` laid over those of the run, or in their place where they are `complete`.

    A secret of None is left out, one that is not named is the run's own.
    """
    schema = run.version.parameter_schema
    plain, sent = split_secrets(schema, parameters)
    typed = {name: value for name, value in {**sent, **(secrets or {})}.items() if value != SET}
    whole = plain if complete else {**run.spec["parameters"], **plain}
    known = secret_names(schema)
    own = run.spec.get("secrets") or {}
    stored = {name: pk for name, pk in own.items() if name in known and name not in typed}
    _check(schema, whole, typed, stored, unknown=_unfilled_places(run, whole))
    who = User.objects.filter(pk=by.user_id).first() if by.user_id else None
    label = f"{run.spider.name}: "
    kept = {
        name: keep(project=run.project, label=label + name, value=value, by=who, now=now).pk
        for name, value in typed.items()
        if value is not None
    }
    order = order_of(run, trigger=trigger, parameters=with_defaults(schema, whole))
    made, _new = request_run(order=replace(order, secrets={**stored, **kept}), by=by, now=now, waiting=order.pending)
    if order.pending:
        enqueue("jobs.prepare", run_id=made.pk)
    return made


def _unfilled_places(run: Run, parameters: Mapping[str, Any]) -> list[tuple[str | int, ...]]:
    return [place for place, _text in each_text(unfilled_parameters(run.spec, parameters))]


def _check(
    schema: Mapping[str, Any],
    plain: Mapping[str, Any],
    typed: Mapping[str, Any],
    stored: Mapping[str, int],
    unknown: Collection[tuple[str | int, ...]],
) -> None:
    known = secret_names(schema)
    said: dict[str, list[str]] = {}
    for name, value in typed.items():
        if name not in known:
            said[name] = [_("There is no secret parameter of this name.")]
        elif value is not None and not (
            isinstance(value, str) and len(value.encode("utf-8", "replace")) <= MAX_SECRET_BYTES
        ):
            said[name] = [_("A secret is a text of at most 64 KiB.")]
    checked = {name: value for name, value in typed.items() if value is not None and name not in said}
    for path, sentences in validate(schema, {**plain, **checked}, secrets={*stored, *said}, unknown=unknown).items():
        said.setdefault(path, sentences)
    if said:
        fields = {f"parameters.{path}" if path else "parameters": sentences for path, sentences in said.items()}
        raise Invalid(_("The parameters do not fit the spider."), fields=fields)


def _is_secret(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode("utf-8", "replace")) <= MAX_SECRET_BYTES
