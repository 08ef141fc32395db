"""The part of a job's form that is the same for every spider, and parameters read from an address."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core.form_fields import DurationField, MegabytesField
from apps.jobs.models import Job
from apps.spiders.models import Spider, Version

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBERS = ("memory_mb", "cpus", "timeout_seconds", "grace_seconds", "priority")
PREFILL = "param."


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


class JobForm(forms.Form):
    """Name, version, limits and environment variables of a job of `spider`."""

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
    env = forms.CharField(
        label=gettext_lazy("Environment variables"),
        required=False,
        strip=False,
        help_text=gettext_lazy("One NAME=value a line. For passwords use a secret parameter: these can be read here."),
        widget=forms.Textarea(attrs={"class": "form-control claw-mono", "rows": 3, "spellcheck": "false"}),
    )

    def __init__(self, data: QueryDict | None = None, *, spider: Spider, job: Job | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("initial", job_values(job) if job else default_values(spider))
        super().__init__(data, **kwargs)
        versions = spider.versions.only("name", "digest", "spider_id").order_by("-created_at", "-pk")
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]  # of ModelChoiceField
        for name in self.errors if self.is_bound else ():
            if name in self.fields:
                self.fields[name].widget.attrs["class"] += " is-invalid"
                self.fields[name].widget.attrs["aria-invalid"] = "true"

    def clean_env(self) -> dict[str, str]:
        variables: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["env"].splitlines(), 1):
            if not line.strip():
                continue
            name, equals, value = line.partition("=")
            name = name.strip()
            if not equals or not ENV_NAME.fullmatch(name):
                raise forms.ValidationError(_("Line %(line)d is not NAME=value.") % {"line": number})
            if name in variables:
                raise forms.ValidationError(_("%(name)s is there twice.") % {"name": name})
            variables[name] = value
        return variables

    @property
    def changes(self) -> dict[str, Any]:
        """Keywords for `services.create_job` and `update_job`, parameters apart."""
        return {name: self.cleaned_data[name] for name in self.fields}


def job_values(job: Job) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(job, name) for name in ("name", *NUMBERS)}
    return {**values, "version": job.version_id, "env": "\n".join(f"{name}={value}" for name, value in job.env.items())}


def default_values(spider: Spider) -> dict[str, Any]:
    """What a new job of the spider starts with: the version's limits before the model's."""
    values: dict[str, Any] = {name: Job._meta.get_field(name).default for name in NUMBERS}  # type: ignore[union-attr]
    limits = spider.current_version.default_limits if spider.current_version else {}
    return {"name": spider.title, **values, **{name: limits[name] for name in NUMBERS if name in limits}}


def changed_values(data: QueryDict, spider: Spider) -> dict[str, Any]:
    """What somebody typed over the values a new job of the spider starts with."""
    fields = JobForm.base_fields
    return {
        name: data[name]
        for name, value in default_values(spider).items()
        if name in data and fields[name].has_changed(value, data[name])
    }


def prefilled(query: QueryDict, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from `?param.name=value`: texts as they are, several or comma-parted for a list, the rest as JSON."""
    properties = schema.get("properties")
    rules: dict[str, Any] = properties if isinstance(properties, dict) else {}
    values: dict[str, Any] = {}
    for key in query:
        name = key.removeprefix(PREFILL)
        rule = rules.get(name)
        if not key.startswith(PREFILL) or not isinstance(rule, dict) or rule.get("writeOnly"):
            continue
        given = query.getlist(key)
        if rule.get("type") == "array":
            parts = given if len(given) > 1 else given[0].split(",")
            values[name] = [_typed(part.strip(), rule.get("items") or {}) for part in parts if part.strip()]
        else:
            values[name] = _typed(given[-1], rule)
    return values


def _typed(text: str, rule: Any) -> Any:
    """A text that is no JSON stays one: the form shows it and says what is wrong."""
    if not isinstance(rule, dict) or rule.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
