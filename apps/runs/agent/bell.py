"""How a task tells the agents of its own process that something has changed."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def listen(listener: Callable[[], None]) -> Callable[[], None]:
    """Call `listener` at each ring; returns what ends that."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def ring() -> None:
    for listener in tuple(_listeners):
        listener()
