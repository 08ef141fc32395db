"""Prints name, queries and median milliseconds of the main pages, one a line, tab-separated."""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 (after set-up)
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from apps.runs.models import Run  # noqa: E402

client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.get(username="admin"))
run = Run.objects.filter(items__gt=0, lines__gt=0).order_by("id").first()
if run is None:
    raise SystemExit("no run to look at")
for name, path in (
    ("run list with 10 000 finished runs", "/runs/"),
    ("run list, failed only, sorted by duration", "/runs/?state=failed&sort=-duration"),
    ("run detail", f"/runs/{run.pk}/?tab=log"),
    ("data page", f"/runs/{run.pk}/?tab=data"),
):
    times: list[float] = []
    queries = 0
    for _ in range(30):
        with CaptureQueriesContext(connection) as captured:
            started = time.perf_counter()
            answer = client.get(path)
            times.append((time.perf_counter() - started) * 1000)
        if answer.status_code != 200:
            raise SystemExit(f"{path}: {answer.status_code}")
        queries = max(queries, len(captured))
    print(f"{name}\t{queries}\t{statistics.median(times):.1f}")
