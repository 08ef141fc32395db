"""Addresses of the jobs pages."""

from __future__ import annotations

from django.urls import path

from apps.jobs.views import (
    backfill,
    batches,
    calendar,
    dependencies,
    editing,
    group_page,
    hooks,
    inputs,
    ledger,
    previewing,
    running,
    schedules,
    showing,
)
from apps.jobs.views.hook_door import HookDoor

app_name = "jobs"
urlpatterns = [
    path("", showing.job_list, name="list"),
    path("new/", editing.create, name="create"),
    path("parameters/", editing.parameters, name="parameters"),
    path("preview/", previewing.preview_parameters, name="preview_parameters"),
    path("<int:pk>/", showing.job_detail, name="detail"),
    path("<int:pk>/edit/", editing.edit, name="edit"),
    path("<int:pk>/delete/", editing.delete, name="delete"),
    path("<int:pk>/run/", running.run, name="run"),
    path("<int:pk>/inputs/", inputs.inputs, name="inputs"),
    path("<int:pk>/dependencies/", dependencies.dependencies, name="dependencies"),
    path("<int:pk>/hooks/", hooks.hook_list, name="hooks"),
    path("<int:pk>/hooks/new/", hooks.create, name="new_hook"),
    path("<int:pk>/hooks/<int:hook>/renew/", hooks.renew, name="renew_hook"),
    path("<int:pk>/hooks/<int:hook>/revoke/", hooks.revoke, name="revoke_hook"),
    path("<int:pk>/ledger/", ledger.ledger, name="ledger"),
    path("<int:pk>/schedules/new/", schedules.create, name="new_schedule"),
]

batch_patterns = [
    path("", batches.batch_list, name="list"),
    path("<int:pk>/", batches.detail, name="detail"),
    path("<int:pk>/live/", batches.live, name="live"),
    path("<int:pk>/stop/", batches.stop, name="stop"),
    path("<int:pk>/again/", batches.again, name="again"),
    path("<int:pk>/items.csv", group_page.items_csv, name="items_csv"),
    path("<int:pk>/items.jsonl", group_page.items_jsonl, name="items_jsonl"),
]

schedule_patterns = [
    path("", schedules.schedule_list, name="list"),
    path("calendar/", calendar.show, name="calendar"),
    path("preview/", schedules.preview, name="preview"),
    path("off/", schedules.all_off, name="off"),
    path("on/", schedules.all_on, name="on"),
    path("<int:pk>/edit/", schedules.edit, name="edit"),
    path("<int:pk>/delete/", schedules.delete, name="delete"),
    path("<int:pk>/switch/", schedules.switch, name="switch"),
    path("<int:pk>/pause/", schedules.pause, name="pause"),
    path("<int:pk>/resume/", schedules.resume, name="resume"),
    path("<int:pk>/backfill/", backfill.backfill, name="backfill"),
]

# The address of a webhook, also as people copy it without its end: a redirect would lose the body.
hook_patterns = [
    path("<str:token>/", HookDoor.as_view(), name="door"),
    path("<str:token>", HookDoor.as_view(), name="door_bare"),
]
