"""Addresses of the panel pages."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "panel"
urlpatterns: list[URLPattern] = []
