"""Valid parameters, drawn as a form and posted back untouched, are the same parameters."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core.schema_forms import SchemaForm, check_schema, validate
from apps.core.schema_forms.containers import kept


class Browser(HTMLParser):
    """Posts the fields of a form as a browser would that nobody types into."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.labelled: set[str] = set()
        self.boxes: list[dict[str, str | None]] = []
        self._select: str | None = None
        self._options: list[tuple[str, bool]] = []
        self._textarea: tuple[str, list[str]] | None = None
        self._in_template = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._in_template += tag == "template"
        if self._in_template:
            return
        if "id" in values:
            self.ids.append(values["id"] or "")
        if tag == "label" and values.get("for"):
            self.labelled.add(values["for"] or "")
        if tag in ("input", "textarea", "select"):
            self.boxes.append(values)
        name, value = values.get("name") or "", values.get("value") or ""
        if tag == "input" and (values.get("type") != "checkbox" or "checked" in values):
            self.pairs.append((name, value.replace("\r", "").replace("\n", "")))
        elif tag == "select":
            self._select, self._options = name, []
        elif tag == "option":
            self._options.append((value, "selected" in values))
        elif tag == "textarea":
            self._textarea = (name, [])

    def handle_data(self, data: str) -> None:
        if self._textarea and not self._in_template:
            self._textarea[1].append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_template -= tag == "template"
        if self._in_template:
            return
        if tag == "select" and self._select is not None:
            chosen = [value for value, selected in self._options if selected] or [self._options[0][0]]
            self.pairs.append((self._select, chosen[-1]))
            self._select = None
        elif tag == "textarea" and self._textarea:
            text = "".join(self._textarea[1]).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n")
            self.pairs.append((self._textarea[0], text.replace("\n", "\r\n")))
            self._textarea = None

    @property
    def data(self) -> QueryDict:
        return QueryDict(urlencode(self.pairs))


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SCALARS: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "string"}, TEXT),
    ({"type": "string", "maxLength": 500}, TEXT),
    ({"type": "string", "default": "from the schema"}, TEXT),
    ({"type": "string", "format": "date"}, st.dates().map(lambda day: day.isoformat())),
    ({"type": "string", "format": "uri"}, st.sampled_from(["https://example.com/?a=b&c=d", "mailto:a@b.de"])),
    ({"type": "string", "enum": ["a", "b", "<c>", "d e"]}, st.sampled_from(["a", "b", "<c>", "d e"])),
    ({"enum": [1, "1", None, True, {"a": [1]}]}, st.sampled_from([1, "1", None, True, {"a": [1]}])),
    ({"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]}, st.sampled_from([1, 2])),
    ({"type": "integer"}, st.integers(-(2**63) + 1, 2**63 - 1)),
    ({"type": "integer", "default": 7, "minimum": 0}, st.integers(0, 10**6)),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "boolean", "default": True}, st.booleans()),
    ({"type": ["integer", "null"]}, st.none() | st.integers(0, 5)),
    ({}, st.recursive(st.none() | st.booleans() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))),
]
Part = tuple[dict[str, Any], st.SearchStrategy[Any]]
NAMES = st.from_regex(r"\A[a-z][a-z_]{0,5}\Z")


def array_of(part: Part) -> Part:
    return {"type": "array", "items": part[0]}, st.lists(part[1], max_size=4)


def object_of(parts: dict[str, tuple[Part, bool]]) -> Part:
    schema = {
        "type": "object",
        "properties": {name: part[0] for name, (part, _needed) in parts.items()},
        "required": [name for name, (_part, needed) in parts.items() if needed],
    }
    needed = {name: part[1] for name, (part, needed) in parts.items() if needed}
    other = {name: part[1] for name, (part, needed) in parts.items() if not needed}
    return schema, st.fixed_dictionaries(needed, optional=other)


def objects(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    return st.dictionaries(NAMES, st.tuples(parts, st.booleans()), max_size=4).map(object_of)


PARTS: st.SearchStrategy[Part] = st.recursive(
    st.sampled_from(SCALARS), lambda inner: inner.map(array_of) | objects(inner), max_leaves=6
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_drawn_comes_back(data: st.DataObject) -> None:
    schema, values = data.draw(objects(PARTS))
    parameters = data.draw(values)
    assert check_schema(schema) == []
    if validate(schema, parameters):
        return

    browser = Browser(str(SchemaForm(schema, initial=parameters)))
    form = SchemaForm(schema, data=browser.data)

    assert form.is_valid(), (form.errors, form.mode)
    assert kept(parameters, form.parameters), form.parameters
    assert len(browser.ids) == len(set(browser.ids))
    assert all(
        box.get("type") == "hidden" or box.get("id") in browser.labelled or box.get("aria-label")
        for box in browser.boxes
    )


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    objects(PARTS), st.dictionaries(st.text(max_size=8).map("p.".__add__), st.lists(st.text(max_size=8), max_size=3))
)
def test_whatever_is_posted_is_refused_or_valid(part: Part, pairs: dict[str, list[str]]) -> None:
    data = QueryDict(mutable=True)
    for name, values in pairs.items():
        data.setlist(name, values)
    form = SchemaForm(part[0], data=data)

    assert form.is_valid() or form.errors
    assert form.errors or validate(part[0], form.parameters) == {}
    assert "<" in str(form)
