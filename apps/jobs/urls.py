"""Addresses of the jobs pages."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "jobs"
urlpatterns: list[URLPattern] = []
