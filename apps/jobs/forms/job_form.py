"""The part of a job's form that is the same for every spider."""

from __future__ import annotations

import re
from typing import Any, cast

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import prefetch_related_objects
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from apps.accounts.models import User
from apps.core.form_fields import DurationField, MegabytesField
from apps.jobs.forms.command_fields import ArgumentsField, CallsField
from apps.jobs.forms.listed_fields import PairsField
from apps.jobs.forms.policy_form import MARK, PolicyForm, policy_values
from apps.jobs.models import Job
from apps.spiders.models import Spider, Version

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBERS = ("memory_mb", "cpus", "timeout_seconds", "grace_seconds", "priority")
BASICS = ("name", "version", *NUMBERS, "env")
COMMAND = ("arguments", "calls")


def _number(name: str, kind: type[forms.Field] = forms.IntegerField, *, label: Any = "", help_text: Any) -> forms.Field:
    """With default and bounds of the model's field."""
    field: Any = Job._meta.get_field(name)
    bounds: dict[str, Any] = {"min": None, "max": None}
    for validator in field.validators:
        if isinstance(validator, MinValueValidator):
            bounds["min"] = max(validator.limit_value, bounds["min"] or validator.limit_value)
        elif isinstance(validator, MaxValueValidator):
            bounds["max"] = min(validator.limit_value, bounds["max"] or validator.limit_value)
    attributes: dict[str, Any] = {"class": "form-control", "autocomplete": "off"}
    if kind.widget is forms.NumberInput:
        attributes["step"] = "any" if kind is forms.FloatField else "1"
    made: Any = kind
    return cast(
        forms.Field,
        made(
            label=label or field.verbose_name,
            min_value=bounds["min"],
            max_value=bounds["max"],
            help_text=help_text,
            widget=kind.widget(attrs=attributes),
        ),
    )


class JobForm(PolicyForm):
    """Name, version, limits, environment variables and policies of a job of `spider`."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=200,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    version = forms.ModelChoiceField(
        label=gettext_lazy("Version"),
        queryset=Version.objects.none(),
        required=False,
        empty_label=gettext_lazy("always the current one"),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    memory_mb = _number(
        "memory_mb",
        MegabytesField,
        label=gettext_lazy("Memory"),
        help_text=gettext_lazy("Such as 512 MB or 1.5 GB. A run that needs more is ended."),
    )
    cpus = _number("cpus", forms.FloatField, help_text=gettext_lazy("How many cores it may keep busy."))
    timeout_seconds = _number(
        "timeout_seconds",
        DurationField,
        label=gettext_lazy("Time limit"),
        help_text=gettext_lazy("Such as 15 min or 1h30m. A run that takes longer is stopped."),
    )
    grace_seconds = _number(
        "grace_seconds",
        DurationField,
        label=gettext_lazy("Grace after stop"),
        help_text=gettext_lazy("Time to end by itself before it is killed, such as 10 s."),
    )
    priority = _number("priority", help_text=gettext_lazy("1 is the most urgent, 9 the least."))
    env = PairsField(
        label=gettext_lazy("Environment variables"),
        name=ENV_NAME,
        help_text=gettext_lazy("One NAME=value a line. For passwords use a secret parameter: these can be read here."),
        widget=forms.Textarea(attrs={"class": "form-control claw-mono", "rows": 3, "spellcheck": "false"}),
    )

    arguments = ArgumentsField(
        label=gettext_lazy("Arguments"),
        help_text=gettext_lazy(
            "One a line, behind the spider's command; no shell reads them. May hold templates such as {{ yesterday }}."
        ),
        widget=forms.Textarea(attrs={"class": "form-control claw-mono", "rows": 3, "spellcheck": "false"}),
    )
    calls = CallsField(
        label=gettext_lazy("Calls before a run"),
        help_text=gettext_lazy(
            'As JSON, such as {"shop": {"url": "https://api.example.com/days/{{ yesterday }}"}}. A template reads the'
            " answer as {{ call.shop.count }}."
        ),
        widget=forms.Textarea(attrs={"class": "form-control claw-mono", "rows": 3, "spellcheck": "false"}),
    )

    field_order = (*BASICS, *COMMAND, *PolicyForm.fails, *PolicyForm.bounds, *PolicyForm.places)

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        spider: Spider,
        job: Job | None = None,
        by: User | None = None,
        **kwargs: Any,
    ) -> None:
        """`by` is who fills it in: what may be chosen depends on it."""
        if job is not None:
            prefetch_related_objects([job], "pools")
        kwargs.setdefault("initial", job_values(job) if job else default_values(spider))
        super().__init__(data, **kwargs)
        versions = spider.versions.only("name", "digest", "spider_id").order_by("-created_at", "-pk")
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]  # of ModelChoiceField
        if spider.kind != Spider.Kind.COMMAND:
            del self.fields["arguments"]
        self.prepare_policies(data, spider, job, by)
        for name in self.errors if self.is_bound else ():
            if name in self.fields:
                self.mark_wrong(name)

    def mark_wrong(self, name: str) -> None:
        attributes = self.fields[name].widget.attrs
        attributes["class"] = f"{attributes.get('class', '')} is-invalid"
        attributes["aria-invalid"] = "true"

    @property
    def changes(self) -> dict[str, Any]:
        """Keywords for `services.create_job` and `update_job`, parameters apart."""
        # A form without these boxes says nothing of them.
        command = {name: self.cleaned_data[name] for name in COMMAND if name in self.fields and name in self.data}
        return {**{name: self.cleaned_data[name] for name in BASICS}, **command, **self.policy_changes}


def job_values(job: Job) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(job, name) for name in ("name", *NUMBERS)}
    values |= {name: getattr(job, name) for name in COMMAND}
    return {**values, "version": job.version_id, "env": job.env, **policy_values(job)}


def default_values(spider: Spider) -> dict[str, Any]:
    """What a new job of the spider starts with: the version's limits before the model's."""
    values: dict[str, Any] = {name: Job._meta.get_field(name).default for name in NUMBERS}  # type: ignore[union-attr]
    limits = spider.current_version.default_limits if spider.current_version else {}
    values |= {name: limits[name] for name in NUMBERS if name in limits}
    return {"name": spider.title, **values, **policy_values(None)}


def changed_values(data: QueryDict, spider: Spider) -> dict[str, Any]:
    """What somebody typed over the values a new job of the spider starts with."""
    fields: dict[str, forms.Field] = JobForm.base_fields
    changed: dict[str, Any] = {}
    for name, value in default_values(spider).items():
        typed = fields[name].widget.value_from_datadict(data, {}, name)
        several = isinstance(fields[name].widget, forms.CheckboxSelectMultiple)
        if (name in data or (several and MARK in data)) and fields[name].has_changed(value, typed):
            changed[name] = typed
    return changed
