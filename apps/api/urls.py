"""Addresses of the REST API."""

from __future__ import annotations

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from apps.api.views import NoSuchAddress
from apps.jobs.api import JobViewSet
from apps.jobs.api.batches import BatchViewSet, DependenciesViewSet
from apps.jobs.api.groups import BackfillViewSet, GroupDataViewSet, InputsViewSet
from apps.jobs.api.hooks import HookViewSet
from apps.jobs.api.ledger import LedgerViewSet
from apps.jobs.api.parameters import ParameterPreviewViewSet
from apps.jobs.api.previews import SchedulePreviewViewSet
from apps.jobs.api.schedules import ScheduleViewSet, SchedulingViewSet
from apps.runs.api import NodeViewSet, PoolViewSet, RunViewSet
from apps.spiders.api import SpiderViewSet

app_name = "api"

router = SimpleRouter(use_regex_path=False)
router.register("spiders", SpiderViewSet, basename="spider")
router.register("jobs", JobViewSet, basename="job")
router.register("jobs/<int:job_pk>/hooks", HookViewSet, basename="hook")
router.register("jobs/<int:job_pk>/ledger", LedgerViewSet, basename="ledger")
router.register("schedules", ScheduleViewSet, basename="schedule")
router.register("scheduling", SchedulingViewSet, basename="scheduling")
router.register("jobs/<int:job_pk>/backfills", BackfillViewSet, basename="backfill")
router.register("jobs/<int:job_pk>/inputs", InputsViewSet, basename="inputs")
router.register("batches", BatchViewSet, basename="batch")
router.register("runs", RunViewSet, basename="run")
router.register("nodes", NodeViewSet, basename="node")
router.register("pools", PoolViewSet, basename="pool")

# Files have no slash at their end, which is why they are not the router's.
FILES = {"log.txt": "log_txt", "items.csv": "items_csv", "items.jsonl": "items_jsonl"}

urlpatterns = [
    path("v1/schedules/preview/", SchedulePreviewViewSet.as_view({"post": "create"}), name="schedule-preview"),
    path("v1/jobs/preview-parameters/", ParameterPreviewViewSet.as_view({"post": "create"}), name="parameter-preview"),
    path(
        "v1/jobs/<int:job_pk>/dependencies/",
        DependenciesViewSet.as_view({"get": "retrieve", "put": "update"}),
        name="job-dependencies",
    ),
    path("v1/", include(router.urls)),
    *(
        path(f"v1/runs/<int:pk>/{file}", RunViewSet.as_view({"get": action}), name=f"run-{action}")
        for file, action in FILES.items()
    ),
    *(
        path(f"v1/batches/<int:pk>/items.{kind}", GroupDataViewSet.as_view({"get": action}), name=f"batch-{action}")
        for kind, action in (("csv", "items_csv"), ("jsonl", "items_jsonl"))
    ),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"),
    # Programs get an answer in JSON for every address, also a wrong one.
    re_path("", NoSuchAddress.as_view(), name="nowhere"),
]
