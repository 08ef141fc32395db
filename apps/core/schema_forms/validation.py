"""Parameters against their schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def secret_names(schema: Mapping[str, Any]) -> frozenset[str]:
    return frozenset()


def split_secrets(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(parameters), {}


def validate(schema: Mapping[str, Any], parameters: Any) -> dict[str, list[str]]:
    return {}


def with_defaults(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    return dict(parameters)
