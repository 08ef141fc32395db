"""All addresses; each app brings its own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("apps.api.urls")),
    path("accounts/", include("allauth.urls")),
    path("", include("apps.panel.urls")),
    path("runs/", include("apps.runs.urls")),
    path("spiders/", include("apps.spiders.urls")),
    path("jobs/", include("apps.jobs.urls")),
]
