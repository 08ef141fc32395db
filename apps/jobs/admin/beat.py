"""The tables of django-celery-beat: ordinary tasks of the panel, and the rows that hold the rules of schedules.

A task that fires a schedule is edited here like any other; the database tells the clock (see migration 0006). What
would not be followed cannot be changed, and what could not be kept is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_celery_beat.admin import ClockedScheduleAdmin as BaseClockedScheduleAdmin
from django_celery_beat.admin import CrontabScheduleAdmin as BaseCrontabScheduleAdmin
from django_celery_beat.admin import PeriodicTaskAdmin as BasePeriodicTaskAdmin
from django_celery_beat.admin import PeriodicTaskForm, PeriodicTaskInline, TaskSelectWidget
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from unfold.admin import ModelAdmin, TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from apps.core.actors import person
from apps.core.admin import SuperuserOnly
from apps.core.errors import PanelError
from apps.jobs import services
from apps.jobs.models import FIRE_TASK, Schedule
from apps.jobs.services.schedules import delete_schedule
from apps.jobs.timing import BadRule, Rule, joined, rule_of, words
from apps.runs.states import Trigger

# Schedules by the sun are not offered.
for model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    admin.site.unregister(model)

# Of a task that fires a schedule these say nothing, or must stay as they are.
FIXED = (
    *("regtask", "task", "args", "kwargs", "solar", "expire_seconds"),
    *("queue", "exchange", "routing_key", "priority", "headers"),
)


def rule_of_crontab(crontab: CrontabSchedule) -> Rule:
    """As schedules are fired; or BadRule."""
    columns = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    expression = joined(**{column: getattr(crontab, column) for column in columns})
    return rule_of(type="cron", expression=expression, timezone=str(crontab.timezone))


def words_of_crontab(crontab: CrontabSchedule | None) -> str:
    if crontab is None:
        return ""
    try:
        return f"{words(rule_of_crontab(crontab))} ({crontab.timezone})"
    except BadRule as error:
        return error.message


class TaskSelect(UnfoldAdminSelectWidget, TaskSelectWidget):
    pass


class TaskForm(PeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelect()
        self.fires = self.instance.pk is not None and self.instance.task == FIRE_TASK
        if self.fires:
            for name in FIXED:
                self.fields[name].disabled = True

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean()
        if self.fires:
            self._check_rule(values)
        elif values.get("task") == FIRE_TASK:
            self.add_error("task", _("Schedules are made at their job."))
        return values

    def _check_rule(self, values: dict[str, Any]) -> None:
        start, end = values.get("start_time"), values.get("expires")
        if start and end and end <= start:
            self.add_error("expires", _("The end lies before the start."))
        crontab, interval, clocked = (values.get(name) for name in ("crontab", "interval", "clocked"))
        if values.get("one_off") and clocked is None:
            self.add_error("one_off", _("Only a date is for one time."))
        if crontab is not None:
            try:
                rule_of_crontab(crontab)
            except BadRule as error:
                self.add_error("crontab", error.message)
        if interval is not None and interval.period == IntervalSchedule.MICROSECONDS:
            self.add_error("interval", _("An interval is counted in seconds or longer units."))
        if clocked is not None and "clocked" in self.changed_data and clocked.clocked_time <= timezone.now():
            self.add_error("clocked", _("This time lies in the past."))


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(SuperuserOnly, BasePeriodicTaskAdmin, ModelAdmin):
    form = TaskForm
    # Ten thousand jobs may have as many crontabs: too many for a box to choose from.
    autocomplete_fields = ("crontab", "interval", "clocked")

    @admin.display(description=gettext_lazy("In words"))
    def crontab_translation(self, task: PeriodicTask) -> str:
        return words_of_crontab(task.crontab)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Past that of django-celery-beat, which puts all crontabs in words into the page."""
        context = {"readable_crontabs": {}, **(extra_context or {})}
        answer: HttpResponse = ModelAdmin.changeform_view(self, request, object_id, form_url, context)
        return answer

    def delete_model(self, request: HttpRequest, obj: PeriodicTask) -> None:
        schedule = Schedule.objects.filter(task=obj.pk).first()
        if schedule is None:
            obj.delete()
        else:
            delete_schedule(schedule=schedule, by=person(request.user), now=timezone.now())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None:
        for task in queryset.order_by("pk"):
            self.delete_model(request, task)

    @admin.action(description=gettext_lazy("Run selected tasks"))
    def run_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None:
        """A schedule has no task to be sent: its job is run, with the schedule's parameters."""
        for schedule in Schedule.objects.filter(task__in=queryset).select_related("job").order_by("pk"):
            by, now = person(request.user), timezone.now()
            try:
                run, _new = services.run_job(
                    job=schedule.job, by=by, now=now, trigger=Trigger.MANUAL, parameters=schedule.parameters
                )
            except PanelError as error:
                self.message_user(request, f"{schedule.job}: {error.message}", messages.ERROR)
            else:
                message = _("Run %(id)s of job %(job)s is queued.") % {"id": run.pk, "job": schedule.job.name}
                self.message_user(request, message, messages.SUCCESS)
        ordinary = queryset.exclude(task=FIRE_TASK)
        if ordinary:
            super().run_tasks(request, ordinary)


class TaskInline(PeriodicTaskInline, TabularInline):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class FiringRowForm(forms.ModelForm):
    """A row that schedules use must keep to their rules; one for ordinary tasks only to those of beat."""

    # Raises BadRule for values that no schedule may have.
    check_values: ClassVar[Callable[[dict[str, Any]], object]]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if self.instance.pk and not self.errors and self._fires():
            try:
                type(self).check_values(values)
            except BadRule as error:
                raise ValidationError(error.message) from error
        return values

    def _fires(self) -> bool:
        return bool(self.instance.periodictask_set.filter(task=FIRE_TASK).exists())


class CrontabForm(FiringRowForm):
    @staticmethod
    def check_values(values: dict[str, Any]) -> None:
        rule_of_crontab(CrontabSchedule(**values))


class IntervalForm(FiringRowForm):
    @staticmethod
    def check_values(values: dict[str, Any]) -> None:
        if values["period"] == IntervalSchedule.MICROSECONDS:
            raise BadRule("period", _("An interval is counted in seconds or longer units."))


class RowAdmin(SuperuserOnly, ModelAdmin):
    inlines = [TaskInline]
    # A list must not be asked for without an end: boxes search in it.
    search_help_text = gettext_lazy("By the parts of the rule.")


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(RowAdmin):
    form = IntervalForm
    search_fields = ("every", "period")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(RowAdmin, BaseCrontabScheduleAdmin):
    form = CrontabForm
    inlines = [TaskInline]
    search_fields = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")

    @admin.display(description=gettext_lazy("In words"))
    def human_readable(self, crontab: CrontabSchedule) -> str:
        return words_of_crontab(crontab)


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(RowAdmin, BaseClockedScheduleAdmin):
    inlines = [TaskInline]
    search_fields = ("clocked_time",)
