"""Addresses of the spiders pages."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "spiders"
urlpatterns: list[URLPattern] = []
