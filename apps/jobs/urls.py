"""Addresses of the jobs pages."""

from __future__ import annotations

from django.urls import path

from apps.jobs.views import editing, hooks, running, showing
from apps.jobs.views.hook_door import HookDoor

app_name = "jobs"
urlpatterns = [
    path("", showing.job_list, name="list"),
    path("new/", editing.create, name="create"),
    path("parameters/", editing.parameters, name="parameters"),
    path("<int:pk>/", showing.job_detail, name="detail"),
    path("<int:pk>/edit/", editing.edit, name="edit"),
    path("<int:pk>/delete/", editing.delete, name="delete"),
    path("<int:pk>/run/", running.run, name="run"),
    path("<int:pk>/hooks/", hooks.hook_list, name="hooks"),
    path("<int:pk>/hooks/new/", hooks.create, name="new_hook"),
    path("<int:pk>/hooks/<int:hook>/renew/", hooks.renew, name="renew_hook"),
    path("<int:pk>/hooks/<int:hook>/revoke/", hooks.revoke, name="revoke_hook"),
]

# The address of a webhook, also as people copy it without its end: a redirect would lose the body.
hook_patterns = [
    path("<str:token>/", HookDoor.as_view(), name="door"),
    path("<str:token>", HookDoor.as_view(), name="door_bare"),
]
