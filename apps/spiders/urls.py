"""Addresses of the spiders pages."""

from __future__ import annotations

from django.urls import path

from apps.spiders import views

app_name = "spiders"
urlpatterns = [
    path("", views.spider_list, name="list"),
    path("<slug:name>/", views.spider_detail, name="detail"),
]
