"""The part of a job's form that says what happens when it fails, when it is active already, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django import forms
from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.forms.boxes import PoolsField, RepairJobField, box, number, pause, select, span, whole
from apps.jobs.forms.listed_fields import CodesField, PairsField, PausesField
from apps.jobs.models import Job, NodeLost, Overlap
from apps.jobs.policies import LARGEST_FACTOR, MOST_INFRASTRUCTURE, Faults, check_retry
from apps.jobs.services.limits import COUNTING, take_limits
from apps.jobs.tables import section_words
from apps.runs.models import Node, Pool
from apps.runs.policies import MOST_ATTEMPTS, Backoff, FailedItems, RetryPolicy
from apps.spiders.models import Spider

RETRY = "retry_"
# A form without it says nothing of policies: it was opened before there were any, or a program made it.
MARK = "policies"

CAUSES = (
    ("exit", gettext_lazy("it ends with an error")),
    ("oom", gettext_lazy("it runs out of memory")),
    ("timeout", gettext_lazy("it takes too long or shows no sign of life")),
)
BACKOFFS = (
    (str(Backoff.EXPONENTIAL), gettext_lazy("growing pauses")),
    (str(Backoff.FIXED), gettext_lazy("the same pause each time")),
    (str(Backoff.LIST), gettext_lazy("a list of pauses")),
)
FAILED_ITEMS = (
    (str(FailedItems.KEEP), gettext_lazy("keep them beside the new ones")),
    (str(FailedItems.REPLACE), gettext_lazy("replace them by those of the next attempt")),
)


class PolicyForm(forms.Form):
    """What is typed here the services check; bounds stand here too, so that all faults are told at once."""

    policies = forms.CharField(required=False, initial="1", widget=forms.HiddenInput)

    retry_attempts = whole(
        gettext_lazy("Attempts"),
        gettext_lazy("With the first one: 1 means that a run that fails is not tried again."),
        1,
        MOST_ATTEMPTS,
    )
    retry_causes = forms.MultipleChoiceField(
        label=gettext_lazy("It is tried again when"),
        choices=CAUSES,
        required=False,
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )
    retry_backoff = select(gettext_lazy("Between attempts"), BACKOFFS)
    retry_delay_seconds = pause(gettext_lazy("First pause"), gettext_lazy("Such as 30s or 5m."))
    retry_factor = number(
        gettext_lazy("Growth"),
        gettext_lazy("2: each pause is twice the one before, 30s, 1m, 2m …"),
        1.0,
        LARGEST_FACTOR,
    )
    retry_cap_seconds = pause(gettext_lazy("Longest pause"), gettext_lazy("Pauses grow up to here."))
    retry_delays = PausesField(
        label=gettext_lazy("Pauses, one after the other"),
        required=False,
        help_text=gettext_lazy("Such as 30s, 5m, 1h. The last one is used for all that follow."),
        widget=forms.TextInput(attrs=box()),
    )
    retry_jitter = number(
        gettext_lazy("Random share of a pause"),
        gettext_lazy("0.1: up to a tenth shorter or longer, so that not all come back at once."),
        0.0,
        1.0,
    )
    retry_codes = CodesField(
        label=gettext_lazy("Only with these exit codes"),
        required=False,
        help_text=gettext_lazy("Such as 1, 75. Empty: with any."),
        widget=forms.TextInput(attrs=box()),
    )
    retry_never_codes = CodesField(
        label=gettext_lazy("Never with these exit codes"),
        required=False,
        help_text=gettext_lazy("Such as 2, for a fault that stays."),
        widget=forms.TextInput(attrs=box()),
    )
    retry_items = select(gettext_lazy("Items of a failed attempt"), FAILED_ITEMS)
    retry_infrastructure = whole(
        gettext_lazy("New starts after trouble with a node"),
        gettext_lazy("When its node or engine fails, which is no fault of the spider. Counted apart from attempts."),
        0,
        MOST_INFRASTRUCTURE,
    )
    on_node_lost = select(
        gettext_lazy("When its node falls silent"),
        NodeLost.choices,
        gettext_lazy("Waiting is safe for what must never run twice: the node may only have lost its network."),
    )
    repair_job = RepairJobField(
        label=gettext_lazy("Repair job"),
        queryset=Job.objects.none(),
        required=False,
        empty_label=gettext_lazy("none"),
        help_text=gettext_lazy(
            "Runs when all attempts have failed. It gets the number of the failed run as parameter failed_run, if its"
            " spider has one, and as variable CLAW_FAILED_RUN."
        ),
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    overlap = select(
        gettext_lazy("When it is active already"),
        Overlap.choices,
        gettext_lazy("What a new run does while an earlier one of this job waits, runs or pauses between attempts."),
    )
    overlap_max = forms.IntegerField(
        label=gettext_lazy("At most"),
        required=False,
        min_value=1,
        max_value=1000,
        help_text=gettext_lazy("Runs that wait (empty: 100), or that go side by side (empty: any number)."),
        widget=forms.NumberInput(attrs=box(step="1")),
    )
    start_seconds = span(
        "start_seconds", gettext_lazy("Limit for the start"), gettext_lazy("Such as 5m, until the program runs.")
    )
    idle_seconds = span(
        "idle_seconds",
        gettext_lazy("Limit without a sign of life"),
        gettext_lazy("Such as 10m without a line, an item or a request."),
    )
    total_seconds = span(
        "total_seconds",
        gettext_lazy("Limit over all attempts"),
        gettext_lazy("With the pauses between them; not below the time limit of one."),
    )
    queue_seconds = span(
        "queue_seconds", gettext_lazy("Limit in the queue"), gettext_lazy("What has not started by then never does.")
    )
    pause_seconds = span(
        "pause_seconds",
        gettext_lazy("Longest pause by hand"),
        gettext_lazy("A paused run then goes on by itself. Empty: after a day."),
    )

    pools = PoolsField(
        label=gettext_lazy("Pools"),
        queryset=Pool.objects.none(),
        required=False,
        help_text=gettext_lazy("Jobs of a pool share its limit, for example one for a site that they all visit."),
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )
    selector = PairsField(
        label=gettext_lazy("Only on nodes with these labels"),
        trim_values=True,
        widget=forms.Textarea(attrs=box(rows="2", spellcheck="false") | {"class": "form-control claw-mono"}),
    )

    fails = (
        "retry_attempts", "retry_causes", "retry_backoff", "retry_delay_seconds", "retry_factor", "retry_cap_seconds",
        "retry_delays", "retry_jitter", "retry_codes", "retry_never_codes", "retry_items", "retry_infrastructure",
        "on_node_lost", "repair_job",
    )  # fmt: skip
    bounds = (
        "overlap", "overlap_max", "start_seconds", "idle_seconds", "total_seconds", "queue_seconds", "pause_seconds",
    )  # fmt: skip
    places = ("pools", "selector")

    # What each folded section holds; empty where something was typed.
    words: Mapping[str, str] = MappingProxyType({})

    def prepare_policies(self, data: QueryDict | None, spider: Spider, job: Job | None, by: User | None) -> None:
        """Fill the choices; of a form that does not carry the sections, take them out."""
        if data is not None and MARK not in data:
            for name in (MARK, *self.fails, *self.bounds, *self.places):
                del self.fields[name]
            return
        pools: Any = self.fields["pools"]
        pools.queryset = Pool.objects.order_by("name", "pk")
        repairs: Any = self.fields["repair_job"]
        chosen = job.repair_job_id if job else None
        mine = allowed(by, "run", Job) if by else Job.objects.none()
        known = Q(pk__in=mine.filter(project=spider.project_id).values("pk")) | Q(pk=chosen or 0)
        repairs.queryset = Job.objects.filter(known).exclude(pk=job.pk if job else 0).order_by("name", "pk")
        if chosen and not (by and allowed(by, "view", Job).filter(pk=chosen).exists()):
            repairs.nameless = chosen
        self.fields["selector"].help_text = _labels_help()
        self.words = {} if data is not None else section_words(job or Job())

    def clean(self) -> None:
        """What does not go together is told at once with the faults of single boxes."""
        faults: Faults = {}
        together = ("timeout_seconds", "total_seconds")
        if all(name in self.cleaned_data for name in together):
            take_limits(Job(), {name: self.cleaned_data[name] for name in together}, faults=faults)
        if "retry_attempts" in self.fields and not any(name in self.errors for name in self.fails):
            faults |= check_retry(self._retry())[1]
        for name, sentences in faults.items():
            self.add_error(name.replace("retry.", RETRY, 1), sentences)

    def _retry(self) -> dict[str, Any]:
        return {name.removeprefix(RETRY): self.cleaned_data[name] for name in self.fails if name.startswith(RETRY)}

    @property
    def policy_changes(self) -> dict[str, Any]:
        """Keywords for the services."""
        if "overlap" not in self.fields:
            return {}
        given = self.cleaned_data
        names = ("on_node_lost", "repair_job", *self.bounds, *self.places)
        changes: dict[str, Any] = {name: given[name] for name in names}
        if changes["overlap"] not in COUNTING:
            # The number of another choice may still stand in its box.
            changes["overlap_max"] = None
        changes["retry"] = self._retry()
        return changes

    def open_sections(self) -> list[str]:
        """Those with a fault are shown unfolded."""
        sections = {"fails": self.fails, "bounds": self.bounds, "places": self.places}
        return [name for name, fields in sections.items() if any(field in self.errors for field in fields)]


def _labels_help() -> str:
    known = sorted(
        {
            f"{name}={value}"
            for labels in Node.objects.values_list("labels", flat=True)
            for name, value in labels.items()
        }
    )
    if known:
        return _("One NAME=value a line. Known: %(labels)s.") % {"labels": ", ".join(known[:20])}
    return _("One NAME=value a line. No node has a label yet.")


def policy_values(job: Job | None) -> dict[str, Any]:
    """What the fields start with; a new job has the model's defaults."""
    source = job or Job()
    retry = RetryPolicy.read(source.retry).as_spec()
    values: dict[str, Any] = {name: getattr(source, name) for name in ("on_node_lost", *PolicyForm.bounds)}
    values |= {f"{RETRY}{name}": value for name, value in retry.items()}
    pools = [pool.pk for pool in job.pools.all()] if job else []
    return {**values, MARK: "1", "selector": source.selector, "pools": pools, "repair_job": source.repair_job_id}
