"""The admins that other packages bring, in the clothes of ours; and none for what is not used."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from django.contrib import admin
from django.http import HttpRequest
from django_celery_beat.admin import ClockedScheduleAdmin as BaseClockedScheduleAdmin
from django_celery_beat.admin import CrontabScheduleAdmin as BaseCrontabScheduleAdmin
from django_celery_beat.admin import PeriodicTaskAdmin as BasePeriodicTaskAdmin
from django_celery_beat.admin import PeriodicTaskForm, PeriodicTaskInline, TaskSelectWidget
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.admin import ModelAdmin, TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

# Signing in needs no address, and schedules by the sun are not offered.
for model in (EmailAddress, ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    admin.site.unregister(model)


class SuperuserOnly:
    """For what concerns the whole panel: who could change it could become anybody."""

    def _is_superuser(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_superuser(request)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return self._is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_superuser(request)


class TaskSelect(UnfoldAdminSelectWidget, TaskSelectWidget):
    pass


class TaskForm(PeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelect()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(SuperuserOnly, BasePeriodicTaskAdmin, ModelAdmin):
    form = TaskForm


class TaskInline(PeriodicTaskInline, TabularInline):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(SuperuserOnly, ModelAdmin):
    inlines = [TaskInline]


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(SuperuserOnly, BaseCrontabScheduleAdmin, ModelAdmin):
    inlines = [TaskInline]


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(SuperuserOnly, BaseClockedScheduleAdmin, ModelAdmin):
    inlines = [TaskInline]
