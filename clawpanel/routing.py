"""Websocket addresses."""

from __future__ import annotations

from django.urls import path

from apps.runs.consumers import LogConsumer

websocket_urlpatterns = [path("ws/runs/<int:run_id>/log/", LogConsumer.as_asgi())]
