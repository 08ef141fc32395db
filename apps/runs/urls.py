"""Addresses of the runs pages."""

from __future__ import annotations

from django.urls import path

from apps.runs.views import data, detail, listing, log, metrics

app_name = "runs"
urlpatterns = [
    path("", listing.run_list, name="list"),
    path("rows/", listing.run_rows, name="rows"),
    path("<int:run_id>/", detail.detail, name="detail"),
    path("<int:run_id>/head/", detail.head, name="head"),
    path("<int:run_id>/stop/", detail.stop, name="stop"),
    path("<int:run_id>/rerun/", detail.rerun, name="rerun"),
    path("<int:run_id>/log/", log.rows, name="log"),
    path("<int:run_id>/log/index/", log.index, name="log_index"),
    path("<int:run_id>/run.log", log.download, name="log_download"),
    path("<int:run_id>/items/new/", data.new_items, name="new_items"),
    path("<int:run_id>/items.csv", data.items_csv, name="items_csv"),
    path("<int:run_id>/items.jsonl", data.items_jsonl, name="items_jsonl"),
    path("<int:run_id>/samples/", metrics.samples, name="samples"),
]
