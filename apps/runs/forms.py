"""What a person asks the run list for, read from the address; and the small forms of nodes and pools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.core.errors import Invalid, PanelError
from apps.runs.models import Pool
from apps.runs.states import ACTIVE, State, Trigger

# `?state=active` stands for every state in which something is still to come.
ACTIVE_WORD = "active"
SPANS: Mapping[str, tuple[Promise, timedelta]] = {
    "1h": (_("Last hour"), timedelta(hours=1)),
    "24h": (_("Last 24 hours"), timedelta(days=1)),
    "7d": (_("Last 7 days"), timedelta(days=7)),
    "30d": (_("Last 30 days"), timedelta(days=30)),
}
SORTS = ("-id", "id", "-started", "started", "-duration", "duration", "-items", "items", "-errors", "errors")
LONGEST_SEARCH = 100
MOST_IDS = 200


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Anything that cannot be understood is left out: an old or mistyped address still shows a list."""

    states: tuple[str, ...] = ()
    job: int | None = None
    spider: str = ""
    trigger: str = ""
    since: str = ""
    search: str = ""
    mine: bool = False

    @classmethod
    def read(cls, query: QueryDict) -> RunFilter:
        states = query.getlist("state")
        spider, trigger, since = query.get("spider", ""), query.get("trigger", ""), query.get("since", "")
        return cls(
            states=tuple(dict.fromkeys(s for s in states if s in State.values or s == ACTIVE_WORD)),
            job=_number(query.get("job", "")),
            spider=spider if re.fullmatch(r"[a-z0-9_-]{1,64}", spider) else "",
            trigger=trigger if trigger in Trigger.values else "",
            since=since if since in SPANS else "",
            search=query.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH],
            mine=query.get("mine") == "1",
        )

    @property
    def wanted_states(self) -> tuple[str, ...]:
        plain = [state for state in self.states if state != ACTIVE_WORD]
        return tuple({*plain, *(ACTIVE if ACTIVE_WORD in self.states else ())})

    @property
    def span(self) -> timedelta | None:
        return SPANS[self.since][1] if self.since else None

    def __bool__(self) -> bool:
        return self != RunFilter()


def read_sort(query: QueryDict) -> str:
    sort = query.get("sort", "")
    return sort if sort in SORTS else SORTS[0]


def read_ids(text: str) -> list[int]:
    numbers = (_number(part) for part in text.split(",")[:MOST_IDS])
    return [number for number in numbers if number is not None]


def read_many(texts: list[str]) -> list[int]:
    """Ids from the boxes of a list, each once."""
    numbers = (_number(text) for text in texts[:MOST_IDS])
    return list(dict.fromkeys(number for number in numbers if number is not None))


def _number(text: str) -> int | None:
    """A primary key; longer digits than a bigint has are no key of ours."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


class PoolForm(forms.Form):
    """What a pool is; its rules are those of the service."""

    name = forms.CharField(
        label=_("Name"),
        max_length=64,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
        help_text=_("Often the site that is crawled, such as shop.example."),
    )
    limit = forms.IntegerField(
        label=Pool._meta.get_field("limit").verbose_name,
        min_value=1,
        max_value=10_000,
        initial=3,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
        help_text=_("The most runs of its jobs that run at once, on all nodes together."),
    )
    description = forms.CharField(
        label=_("Description"),
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )

    def take(self, error: PanelError) -> None:
        """Put the sentences of a refusal at their fields."""
        if not error.fields:
            self.add_error(None, error.message)
        for name, sentences in error.fields.items():
            for sentence in sentences:
                self.add_error(name if name in self.fields else None, sentence)


def read_labels(text: str) -> dict[str, str]:
    """Labels from lines of name=value."""
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or name in labels:
            said = gettext("%(name)s is there twice.") if equals else gettext("Line %(line)d is not name=value.")
            raise Invalid(said % {"name": name, "line": number})
        labels[name] = value
    return labels


def write_labels(labels: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in sorted(labels.items()))
