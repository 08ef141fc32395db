"""Live log over a websocket."""

from __future__ import annotations

from channels.generic.websocket import AsyncWebsocketConsumer


class LogConsumer(AsyncWebsocketConsumer):
    """Streams a run's log lines; see docs/architecture.md."""
