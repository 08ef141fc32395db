"""The run's parameters: CLAW_PARAMS, and secrets from their files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterable

from clawspider.exits import BadParameters


def params() -> dict[str, Any]:
    """Parameters of this run as one dict, secrets included."""
    text = os.environ.get("CLAW_PARAMS") or "{}"
    try:
        values = json.loads(text)
    except ValueError as error:
        raise BadParameters(f"CLAW_PARAMS is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise BadParameters("CLAW_PARAMS has to be a JSON object.")
    values.update(secrets())
    return values


def secrets() -> dict[str, str]:
    folder = os.environ.get("CLAW_SECRETS", "")
    if not folder or not Path(folder).is_dir():
        return {}
    files = (path for path in sorted(Path(folder).iterdir()) if path.is_file() and not path.name.startswith("."))
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def from_arguments(pairs: Iterable[str]) -> dict[str, Any]:
    """Parameters written as NAME=VALUE; VALUE is JSON where it can be, else text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise BadParameters(f"A parameter is written NAME=VALUE, not {pair!r}.")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values
