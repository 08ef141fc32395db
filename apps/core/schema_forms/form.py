"""The form itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.http import QueryDict


class SchemaForm:
    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        data: QueryDict | None = None,
        initial: Mapping[str, Any] | None = None,
        secrets_set: Collection[str] = (),
        prefix: str = "p",
    ) -> None:
        self.parameters: dict[str, Any] = dict(initial or {})
        self.secrets: dict[str, str] = {}
        self.cleared: frozenset[str] = frozenset()
        self.errors: dict[str, list[str]] = {}

    def is_valid(self) -> bool:
        return True

    def __str__(self) -> str:
        return ""
