"""All addresses; each app brings its own."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.decorators.http import require_safe
from django.views.defaults import page_not_found

from apps.jobs.urls import batch_patterns, hook_patterns, schedule_patterns
from apps.runs.urls import node_patterns, pool_patterns

admin.autodiscover()
# The admin has no door of its own: one place checks passwords, counts failures and will ask for a second factor.
# Nor does it take a password from staff who are signed in and might guess those of others.
sign_in = require_safe(secure_admin_login(admin.site.login))  # type: ignore[no-untyped-call]
admin.site.login = sign_in  # type: ignore[method-assign]  # as allauth says

urlpatterns = [
    # allauth brings pages that need e-mail; without it they would only promise what cannot be kept.
    re_path(
        r"^accounts/(?!(?:login|logout|inactive|signup|reauthenticate|password/change)/$)",
        page_not_found,
        {"exception": Exception("not offered")},
    ),
    path("admin/", admin.site.urls),
    path("api/", include("apps.api.urls")),
    path("accounts/", include("allauth.urls")),
    path("", include("apps.panel.urls")),
    path("runs/", include("apps.runs.urls")),
    path("nodes/", include((node_patterns, "nodes"))),
    path("pools/", include((pool_patterns, "pools"))),
    path("spiders/", include("apps.spiders.urls")),
    path("jobs/", include("apps.jobs.urls")),
    path("batches/", include((batch_patterns, "batches"))),
    path("schedules/", include((schedule_patterns, "schedules"))),
    path("hooks/", include((hook_patterns, "hooks"))),
]
