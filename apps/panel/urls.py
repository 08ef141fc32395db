"""Addresses of the panel pages."""

from __future__ import annotations

from django.urls import path

from apps.panel import views

app_name = "panel"
urlpatterns = [
    path("", views.home, name="home"),
    path("preferences/", views.preferences, name="preferences"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]
