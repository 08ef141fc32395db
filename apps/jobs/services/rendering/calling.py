"""The calls of a job, made just before one of its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import orjson
from django.utils.translation import gettext as _

from apps.core.errors import Invalid, PanelError
from apps.core.safe_http import DEADLINE_SECONDS, Allowed, Guard, fetch, is_public
from apps.core.templating import TemplateFault, Values, is_template, parse, render, replaced
from apps.jobs.models import CallHost
from apps.jobs.services.template_names import Names
from apps.spiders.secrets import reveal

_LINE_BREAK = re.compile(r"[\r\n\0]")
MAX_DEPTH = 32


class CallFailed(Invalid):
    """Its answer is needed, so the run cannot be."""

    code = "call_failed"


def make_calls(
    calls: Mapping[str, Any], *, names: Names, secrets: Mapping[str, int], guard: Guard = is_public
) -> dict[str, Any]:
    """The answers by the names of the calls. Raises CallFailed; `secrets` are ids by name."""
    allowed = allowed_hosts()
    answers: dict[str, Any] = {}
    for name, call in sorted(calls.items()):
        try:
            answers[name] = _answer(call, names.values(), secrets, allowed, guard)
        except PanelError as error:
            sentence = _("Call “%(name)s”: %(sentence)s") % {"name": name, "sentence": error.message}
            raise CallFailed(sentence, fields={f"calls.{name}": [error.message]}) from error
    return answers


def allowed_hosts() -> Allowed:
    return Allowed.read(list(CallHost.objects.values_list("host", flat=True)))


def _answer(call: Mapping[str, Any], values: Values, secrets: Mapping[str, int], allowed: Allowed, guard: Guard) -> Any:
    url = filled_url(str(call.get("url", "")), values)
    headers = {name: _header(render(str(text), values)) for name, text in (call.get("headers") or {}).items()}
    wanted: Mapping[str, str] = call.get("secret_headers") or {}
    ids = {header: secrets[name] for header, name in wanted.items() if name in secrets}
    if missing := sorted(name for header, name in wanted.items() if header not in ids):
        raise Invalid(_("The secret “%(name)s” is not set.") % {"name": missing[0]})
    headers |= {header: _header(value) for header, value in reveal(ids).items()}
    body = _body(call, values)
    if body is not None and "content-type" not in {name.lower() for name in headers}:
        headers["Content-Type"] = "application/json"
    answer = fetch(
        str(call.get("method") or "GET"),
        url,
        allowed=allowed,
        headers=headers,
        body=body,
        guard=guard,
        deadline_seconds=DEADLINE_SECONDS,
    )
    return _read(answer.content)


def filled_url(text: str, values: Values) -> str:
    """Each value as one piece of path or query: no value leads to another host or adds a parameter."""
    parts = []
    for part in parse(text).parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            value = render(part.source, values)
            parts.append(quote(value if isinstance(value, str) else orjson.dumps(value).decode(), safe=""))
    return "".join(parts)


def _header(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if _LINE_BREAK.search(text) or not text.isascii():
        raise Invalid(_("A header is one line of ASCII letters."))
    return text


def _body(call: Mapping[str, Any], values: Values) -> bytes | None:
    body = call.get("body")
    if body is None:
        return None
    filled = replaced(body, lambda _place, text: render(text, values))
    return filled.encode() if isinstance(filled, str) and not is_template(body) else orjson.dumps(filled)


def _read(content: bytes) -> Any:
    try:
        answer = orjson.loads(content)
    except ValueError as error:
        raise TemplateFault(_("The answer is not JSON.")) from error
    if _depth(answer) > MAX_DEPTH:
        raise TemplateFault(_("The answer is nested too deeply."))
    return answer


def _depth(value: Any) -> int:
    deepest, todo = 0, [(value, 1)]
    while todo:
        part, depth = todo.pop()
        deepest = max(deepest, depth)
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        todo.extend((entry, depth + 1) for entry in inner)
    return deepest
