"""Addresses of the runs pages."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.runs.views import listing

app_name = "runs"
urlpatterns: list[URLPattern] = [
    path("", listing.run_list, name="list"),
    path("rows/", listing.run_rows, name="rows"),
]
