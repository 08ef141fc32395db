"""Lines for a terminal that call a webhook: what its page shows once, ready to be copied."""

from __future__ import annotations

import json
import shlex
from typing import Any

from apps.core.schema_forms import secret_names
from apps.jobs.models import Hook, Job
from apps.jobs.selectors import version_of

MOST_SHOWN = 3


def example_body(hook: Hook, job: Job) -> dict[str, Any]:
    """A body that this hook takes, with some of the job's own values."""
    version = version_of(job)
    schema = version.parameter_schema if version else {}
    secret = secret_names(schema)
    body: dict[str, Any] = {}
    for name, part in list(schema.get("properties", {}).items()):
        if name in secret or (hook.mapping and name not in hook.mapping) or len(body) >= MOST_SHOWN:
            continue
        value = job.parameters.get(name, part.get("default") if isinstance(part, dict) else None)
        if value is None or "{{" in json.dumps(value):
            continue
        _put(body, hook.mapping.get(name, name).split("."), value)
    return body


def _put(body: dict[str, Any], path: list[str], value: Any) -> None:
    """A path into a list makes an object of it: the example shows where things go, no more."""
    for step in path[:-1]:
        inner = body.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        body = inner
    body.setdefault(path[-1], value)


def call_lines(hook: Hook, job: Job, address: str, key: str) -> str:
    """For a shell with curl and, where the body is signed, openssl."""
    body = shlex.quote(json.dumps(example_body(hook, job), ensure_ascii=False))
    where = shlex.quote(address)
    if hook.kind != Hook.Kind.HMAC:
        return f"curl -H 'Content-Type: application/json' -d {body} {where}"
    return "\n".join(
        [
            f"KEY={key}",
            f"BODY={body}",
            """SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$KEY" | sed 's/^.* //')""",
            "curl -H 'Content-Type: application/json' -H \"X-Signature-256: sha256=$SIGNATURE\" \\",
            f'  -d "$BODY" {where}',
        ]
    )
