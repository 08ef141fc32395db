"""Hosts that jobs may ask before a run: whoever lists one opens it for everybody's jobs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin

from apps.core.admin import SuperuserOnly
from apps.core.errors import PanelError
from apps.core.safe_http import listed_host
from apps.jobs.models import CallHost


class CallHostForm(forms.ModelForm):
    class Meta:
        model = CallHost
        fields = ("host", "note")

    def clean_host(self) -> str:
        try:
            return listed_host(self.cleaned_data["host"])
        except PanelError as error:
            raise forms.ValidationError(error.message) from error


@admin.register(CallHost)
class CallHostAdmin(SuperuserOnly, ModelAdmin):
    form = CallHostForm
    list_display = ("host", "note", "created_at")
    search_fields = ("host", "note")
    ordering = ("host",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.created_at = timezone.now()
        super().save_model(request, obj, form, change)
