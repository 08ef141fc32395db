"""Who does something, as it is written into history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """`kind` is "user", "api", "cli", "agent" or "system"; `name` is what the history shows."""

    kind: str
    name: str
    user_id: int | None = None

    def __str__(self) -> str:
        return self.name if self.kind == "user" else f"{self.kind}: {self.name}"


def person(user: Any, kind: str = "user") -> Actor:
    """The actor for a signed-in user, through the page or (`kind="api"`) a token."""
    return Actor(kind, user.get_username(), user.pk)


SYSTEM = Actor("system", "clawpanel")
