"""The language of templates: names and filters, everything else refused in one sentence."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apps.core.templating import (
    MAX_RESULT,
    Known,
    Moment,
    TemplateFault,
    Values,
    check,
    day_of,
    finished,
    is_template,
    parse,
    render,
    render_for_later,
)

CASES = Path(__file__).parents[2] / "cases/lists/param_templates.tsv"
BERLIN = ZoneInfo("Europe/Berlin")


def values(at: datetime, **roots: Any) -> Values:
    names = {
        "today": day_of(at),
        "yesterday": day_of(at, -1),
        "tomorrow": day_of(at, 1),
        "now": Moment(at),
        "scheduled_for": Moment(at),
        "run.id": 7,
    }
    return Values(names, roots, at.tzinfo or UTC)


AT = datetime(2026, 3, 8, 0, 5, tzinfo=BERLIN)
KNOWN = Known(("today", "yesterday", "tomorrow", "now", "scheduled_for", "run.id"), {"params": ["page"]})


def in_our_notation(text: str) -> str:
    """The list leaves the notation open: its `slot` is our date of the scheduled instant."""
    text = re.sub(r"slot - (\d+)d", r'today | offset:"-\1d"', text)
    text = re.sub(r"slot \+ (\d+)d", r'today | offset:"+\1d"', text)
    return text.replace("| compact", '| date:"%Y%m%d"').replace("slot", "today")


ROWS = [line.split("\t") for line in CASES.read_text().splitlines() if line and line[0] != "#"][1:]
WANTED = {
    "{{ slot }}": "2026-03-08",
    "{{ slot - 1d }}": "2026-03-07",
    "--from={{ slot - 7d | compact }}": "--from=20260301",
}


@pytest.mark.parametrize(("verdict", "text"), [(row[0], row[1]) for row in ROWS if row[0] in ("ok", "reject")])
def test_the_list_of_templates(verdict: str, text: str) -> None:
    ours = in_our_notation(text)
    if verdict == "ok":
        assert check(ours, KNOWN) == []
        assert render(ours, values(AT)) == WANTED.get(text, text)
    elif "{{" not in ours and "{%" not in ours:
        # No template at all: it stays what it is.
        assert render(ours, values(AT)) == ours
    else:
        [sentence] = check(ours, KNOWN)
        assert sentence
        with pytest.raises(TemplateFault):
            render(ours, values(AT))


@pytest.mark.parametrize("value", ["{{ today }}", "{% x %}", "}}", "--help", "a\nb", "$(id)", "\u202e"])
def test_a_value_is_never_read(value: str) -> None:
    """The rows of values in the list, and more of the kind."""
    assert render("{{ params.page }}", values(AT, params={"page": value})) == value
    assert render("<{{ params.page }}>", values(AT, params={"page": value})) == f"<{value}>"


@pytest.mark.parametrize("value", ["a\nb\x00c", "x" * 200_000])
def test_a_value_that_no_program_could_be_given_is_refused(value: str) -> None:
    with pytest.raises(TemplateFault):
        render("{{ params.page }}", values(AT, params={"page": value}))
    with pytest.raises(TemplateFault):
        render("<{{ params.page }}>", values(AT, params={"page": value}))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{ yesterday }}", "2026-03-07"),
        ("{{.Yesterday}}", "2026-03-07"),
        ("{{.YESTERDAY}}", "2026-03-07"),
        ("{{ YESTERDAY}}", "2026-03-07"),
        ("{{.ScheduledFor}}", "2026-03-08T00:05:00+01:00"),
        ('{{ scheduled_for | date:"%Y%m%d" | offset:"-7d" }}', "20260301"),
        ('{{ scheduled_for | offset:"-7d" | date:"%Y%m%d" }}', "20260301"),
        ("{{ scheduled_for | date:'%H:%M %Z' }}", "00:05 CET"),
        ('{{ today | offset:"-1M" }}', "2026-02-08"),
        ('{{ today | date:"%s" }}', str(int(datetime(2026, 3, 8, tzinfo=BERLIN).timestamp()))),
        ('{{ now | offset:"-90s" | date:"%T" }}', "00:03:30"),
        ("{{ run.id }}", 7),
        ("run {{ run.id }}", "run 7"),
        ("{{ upstream.a.rows.1.name }}", "x"),
        ('{{ upstream."two words".n }}', 1.5),
        ("{{ upstream.a.rows }}", [0, {"name": "x"}]),
        ("{{ upstream.a.rows | json }}", '[0,{"name":"x"}]'),
        ("-{{ upstream.a.none | default:'no' | upper }}-", "-NO-"),
        ("-{{ upstream.a.gone | default:'no' }}-", "-no-"),
        ("{{ upstream.a.yes }}", True),
        ("{{ upstream.a.yes }}.", "true."),
        ('{{ upstream.a.day | date:"%d.%m.%Y" }}', "01.02.2026"),
        ('{"a":{"b":{{ run.id }}}}', '{"a":{"b":7}}'),
        ("{{ '{{' }}", "{{"),
        ("{ a } }", "{ a } }"),
        ('{"a":{"b":1}}', '{"a":{"b":1}}'),
    ],
)
def test_what_templates_become(text: str, wanted: Any) -> None:
    outputs = {
        "a": {"rows": [0, {"name": "x"}], "none": None, "yes": True, "day": "2026-02-01"},
        "two words": {"n": 1.5},
    }
    assert render(text, values(AT, upstream=outputs)) == wanted


@pytest.mark.parametrize(
    ("text", "bit"),
    [
        ("{{ toady }}", "toady"),
        ("{{ }}", "{{ }}"),
        ("{{ today", "{{ today"),
        ("today }}", "today }}"),
        ("{{ {{ today }} }}", "{{ {{ today }}"),
        ("{{ today }} }}", "}}"),
        ("{% if x %}", "{% if x %}"),
        ("{# hidden #}", "{# hidden #}"),
        ("{{ ''.__class__ }}", "__class__"),
        ("{{ run._state }}", "_state"),
        ("{{ today() }}", "{{ today() }}"),
        ("{{ rows[0] }}", "{{ rows[0] }}"),
        ("{{ today | truncate }}", "truncate"),
        ("{{ today | date }}", "date"),
        ("{{ today | upper:'x' }}", "upper"),
        ('{{ today | date:"%Q" }}', "%Q"),
        ('{{ today | date:"%" }}', "%"),
        ('{{ today | offset:"soon" }}', "soon"),
        ('{{ today | offset:"+3661d" }}', "+3661d"),
        ('{{ today | offset:"1e9d" }}', "1e9d"),
        ('{{ today | offset:"999999999w" }}', "999999999w"),
        ('{{ today | offset:"-3h" }}', "-3h"),
        ('{{ run.id | date:"%Y" }}', "run.id"),
        ("{{ today | date:%Y }}", "date"),
        ('{{ "a }}', '{{ "a }}'),
        ("{{ params.nothing }}", "nothing"),
        ("{{ params }}", "params"),
        ("{{ today" + " | upper" * 11 + " }}", "too many"),
    ],
)
def test_a_fault_names_the_bit(text: str, bit: str) -> None:
    said = check(text, KNOWN)
    if not said:
        with pytest.raises(TemplateFault) as fault:
            render(text, values(AT, params={}))
        said = [fault.value.message]
    assert bit in said[0]


def test_a_template_and_what_it_becomes_are_bounded() -> None:
    assert check("{{ today }}" + "x" * 8200, KNOWN)
    assert len(str(render("x" * 100_000, values(AT)))) == 100_000
    with pytest.raises(TemplateFault):
        render("{{ params.page }}" * 3, values(AT, params={"page": "x" * (MAX_RESULT // 2)}))


@pytest.mark.parametrize(
    ("zone", "at", "text", "wanted"),
    [
        # The 29th has 23 hours in Berlin, the 25th of October 25.
        ("Europe/Berlin", "2026-03-30T00:05+02:00", "{{ yesterday }}", "2026-03-29"),
        ("Europe/Berlin", "2026-10-26T00:05+01:00", "{{ yesterday }}", "2026-10-25"),
        ("Europe/Berlin", "2026-03-30T02:30+02:00", '{{ now | offset:"-1d" }}', "2026-03-29T03:30:00+02:00"),
        ("Europe/Berlin", "2026-03-30T02:30+02:00", '{{ now | offset:"-24h" }}', "2026-03-29T01:30:00+01:00"),
        ("Australia/Lord_Howe", "2026-04-05T12:00+10:30", '{{ now | offset:"-1d" }}', "2026-04-04T12:00:00+11:00"),
        ("America/Sao_Paulo", "2018-11-05T00:05-02:00", "{{ yesterday }}", "2018-11-04"),
        ("Pacific/Apia", "2011-12-31T08:00+14:00", "{{ yesterday }}", "2011-12-30"),
        ("UTC", "2024-03-31T00:00+00:00", '{{ today | offset:"-1M" }}', "2024-02-29"),
    ],
)
def test_days_are_of_the_calendar_and_hours_of_the_clock(zone: str, at: str, text: str, wanted: str) -> None:
    assert render(text, values(datetime.fromisoformat(at).astimezone(ZoneInfo(zone)))) == wanted


def test_what_is_known_later_stays_in_pieces() -> None:
    parts = render_for_later("{{ today }}@{{ node.name | upper }}", values(AT), "node.name")
    assert parts == ["2026-03-08", "@", ["upper"]]
    assert finished(parts, "a{{ x }}") == "2026-03-08@A{{ X }}"
    assert render_for_later("{{ today }}@", values(AT), "node.name") == "2026-03-08@"


PIECES = st.sampled_from(
    ["{{", "}}", "{", "}", "{%", "%}", "{#", "|", ":", ".", '"', "'", " ", "today", "run.id", "params.page", "upstream",
     "date", "offset", "json", "default", "%Y", "%", "-1d", "999999999M", "_x", "(", "[", "0", "\0", "\n", "\ud800"]
)  # fmt: skip
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())


@given(st.one_of(st.text(), st.lists(PIECES, max_size=20).map("".join)), SCALARS)
@example('{{ params.page | date:"%Y" | offset:"-1d" }}', "0001-01-01T00:00:00+14:00")
@example('{{ params.page | date:"%Y" }}', "9999-12-31T23:59:59-14:00")
@example("{{ params.page | json }}", float("nan"))
@example("{{ params.page }}", 10**5000)
@example("a{{ params.page }}", 10**5000)
def test_nothing_but_a_fault_comes_of_any_text(text: str, value: Any) -> None:
    with_value = values(AT, params={"page": value}, upstream={"a": {"b": [value]}})
    for known in (KNOWN, Known(())):
        assert all(isinstance(said, str) for said in check(text, known))
    for fill in (render, lambda *given: render_for_later(*given, "node.name")):
        with contextlib.suppress(TemplateFault):
            fill(text, with_value)


@given(st.text(alphabet="{}%# tody\"'|", max_size=200))
def test_a_value_with_braces_stays_what_it_is(value: str) -> None:
    assert render("{{ params.page }}", values(AT, params={"page": value})) == value
    assert render("a{{ params.page }}{{ params.page }}", values(AT, params={"page": value})) == f"a{value}{value}"


@given(st.text(alphabet=st.characters(exclude_characters="{}"), max_size=300))
def test_a_text_without_braces_is_no_template(text: str) -> None:
    assert not is_template(text)
    assert parse(text).expressions == ()
    assert render(text, values(AT)) == text
