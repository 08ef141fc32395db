"""Addresses of the runs pages."""

from __future__ import annotations

from django.urls import path

from apps.runs.views import acting, data, detail, listing, log, metrics, nodes, pools

app_name = "runs"
urlpatterns = [
    path("", listing.run_list, name="list"),
    path("rows/", listing.run_rows, name="rows"),
    path("bulk/", acting.bulk, name="bulk"),
    path("<int:run_id>/", detail.detail, name="detail"),
    path("<int:run_id>/head/", detail.head, name="head"),
    *(
        path(f"<int:run_id>/{action}/", acting.act, {"action": action}, name=action)
        for action in ("stop", "kill", "pause", "resume")
    ),
    path("<int:run_id>/rerun/", acting.rerun, name="rerun"),
    path("<int:run_id>/log/", log.rows, name="log"),
    path("<int:run_id>/log/index/", log.index, name="log_index"),
    path("<int:run_id>/run.log", log.download, name="log_download"),
    path("<int:run_id>/items/new/", data.new_items, name="new_items"),
    path("<int:run_id>/items.csv", data.items_csv, name="items_csv"),
    path("<int:run_id>/items.jsonl", data.items_jsonl, name="items_jsonl"),
    path("<int:run_id>/samples/", metrics.samples, name="samples"),
]

# Other areas of the panel, with namespaces of their own.
node_patterns = [
    path("", nodes.node_list, name="list"),
    path("maintenance/", nodes.maintenance, name="maintenance"),
    path("maintenance/end/", nodes.end_maintenance, name="end_maintenance"),
    path("<int:pk>/", nodes.node_detail, name="detail"),
    path("<int:pk>/labels/", nodes.labels, name="labels"),
    path("<int:pk>/drain/", nodes.drain, name="drain"),
    *(
        path(f"<int:pk>/{action}/", nodes.act, {"action": action}, name=action)
        for action in ("cordon", "uncordon", "end_drain")
    ),
]
pool_patterns = [
    path("", pools.pool_list, name="list"),
    path("new/", pools.create, name="create"),
    path("<int:pk>/edit/", pools.edit, name="edit"),
    path("<int:pk>/delete/", pools.delete, name="delete"),
]
