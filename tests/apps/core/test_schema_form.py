"""Forms made from a schema: what they show, keep, refuse and say."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import QueryDict
from django.utils import translation

from apps.core.schema_forms import SchemaForm
from tests.apps.core.test_schema_form_round_trip import Browser

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["start_url"],
    "properties": {
        "start_url": {"type": "string", "format": "uri", "title": "Start", "x-title-zh-hans": "起始地址"},
        "max_pages": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "description": "How far to go."},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 2}},
        "sizes": {"type": "array", "items": {"enum": ["s", "m"]}},
        "login": {"type": "object", "properties": {"user": {"type": "string"}, "age": {"type": "integer"}}},
        "sites": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["host"],
                "properties": {"host": {"type": "string"}, "on": {"type": "boolean"}},
            },
        },
        "token": {"type": "string", "writeOnly": True, "minLength": 4},
        "depth": {"type": "number", "x-advanced": True},
    },
}


def form(pairs: dict[str, Any], **kwargs: Any) -> SchemaForm:
    return SchemaForm(SCHEMA, data=QueryDict(urlencode(pairs, doseq=True)), **kwargs)


GOOD = {"p.start_url": "https://example.com/"}


def test_a_good_post_gives_typed_parameters() -> None:
    filled = form(
        GOOD
        | {"p.max_pages": "5", "p.tags.0": "ab", "p.tags.1": "", "p.tags.7": "cd", "p.sizes": ["s", "m"]}
        | {"p.login.user": "me", "p.login.age": "", "p.sites.0.host": "a.b", "p.sites.1.host": "", "p.depth": "1.5"}
    )

    assert filled.is_valid(), filled.errors
    assert filled.parameters == {
        "start_url": "https://example.com/",
        "max_pages": 5,
        "tags": ["ab", "cd"],
        "sizes": ["s", "m"],
        "login": {"user": "me"},
        "sites": [{"host": "a.b", "on": False}],
        "depth": 1.5,
    }


@pytest.mark.parametrize(
    ("pairs", "path"),
    [
        ({"p.start_url": ""}, "start_url"),
        ({"p.start_url": "no address"}, "start_url"),
        (GOOD | {"p.max_pages": "1e3"}, "max_pages"),
        (GOOD | {"p.max_pages": "10"}, "max_pages"),
        (GOOD | {"p.max_pages": "9" * 5000}, "max_pages"),
        (GOOD | {"p.max_pages": "NaN"}, "max_pages"),
        (GOOD | {"p.depth": "NaN"}, "depth"),
        (GOOD | {"p.depth": "1e999"}, "depth"),
        (GOOD | {"p.tags.3": "ab", "p.tags.5": "x"}, "tags.1"),
        (GOOD | {"p.sizes": "xxl"}, "sizes"),
        (GOOD | {"p.sites.0.on": "on"}, "sites.0.host"),
        (GOOD | {"p.login.user": "a\0b"}, "login.user"),
        (GOOD | {"p.other": "1"}, "other"),
        (GOOD | {"p.login.pin": "1"}, "login.pin"),
        (GOOD | {"p.tags.x": "1"}, "tags.x"),
        (GOOD | {"p.token": "abc"}, "token"),
    ],
)
def test_a_fault_is_told_at_its_place_and_what_was_typed_stays(pairs: dict[str, str], path: str) -> None:
    refused = form(pairs)

    assert not refused.is_valid()
    assert list(refused.errors) == [path]
    page = str(refused)
    assert all(sentence in page for sentence in refused.errors[path])
    known = {name for name, _value in Browser(page).pairs}
    kept = {name: value for name, value in pairs.items() if name in known and name not in ("p.token", "p.sizes")}
    assert all(
        (name, value.replace("\0", "\0")) in Browser(page).pairs for name, value in kept.items() if len(value) < 99
    )


def test_a_fault_is_tied_to_its_box_for_screen_readers() -> None:
    page = str(form(GOOD | {"p.max_pages": "0"}))

    box = next(box for box in Browser(page).boxes if box.get("name") == "p.max_pages")
    assert box["aria-invalid"] == "true"
    assert box["aria-describedby"] == "id_p.max_pages_error id_p.max_pages_help"
    assert 'id="id_p.max_pages_error"' in page


def test_labels_and_faults_are_in_the_language_of_the_reader() -> None:
    with translation.override("zh-hans"):
        assert "起始地址" in str(SchemaForm(SCHEMA))
    assert "Start" in str(SchemaForm(SCHEMA))


def test_full_width_digits_are_digits() -> None:
    filled = form(GOOD | {"p.max_pages": "\uff15"})

    assert filled.is_valid()
    assert filled.parameters["max_pages"] == 5


def test_defaults_are_shown_and_absent_optional_objects_stay_absent() -> None:
    browser = Browser(str(SchemaForm(SCHEMA, initial={"start_url": "https://a.b/"})))
    filled = SchemaForm(SCHEMA, data=browser.data)

    assert filled.is_valid()
    assert filled.parameters == {"start_url": "https://a.b/", "max_pages": 3}


def test_text_cleared_against_its_default_stays_empty() -> None:
    schema = {"type": "object", "properties": {"motto": {"type": "string", "default": "x"}}}
    filled = SchemaForm(schema, data=QueryDict("p.motto="))

    assert filled.is_valid()
    assert filled.parameters == {"motto": ""}


# -- secrets ------------------------------------------------------------------------------------------------------


def test_a_secret_is_never_drawn() -> None:
    refused = form({"p.start_url": "", "p.token": "s3cret-value"})
    page = str(refused)

    assert not refused.is_valid()
    assert "s3cret-value" not in page
    assert "Enter it again" in page
    assert "s3cret-value" not in str(SchemaForm(SCHEMA, initial={"token": "s3cret-value", "start_url": "x"}))


def test_a_secret_left_blank_is_kept_and_a_typed_one_replaces_it() -> None:
    assert form(GOOD, secrets_set=["token"]).is_valid()
    typed = form(GOOD | {"p.token": "new one"}, secrets_set=["token"])
    assert typed.is_valid()
    assert typed.secrets == {"token": "new one"}
    assert "token" not in typed.parameters


def test_a_secret_can_be_cleared_but_only_where_one_is_set() -> None:
    cleared = form(GOOD | {"p__clear": ["token", "start_url"]}, secrets_set=["token"])
    assert cleared.is_valid()
    assert cleared.cleared == {"token"}
    assert form(GOOD | {"p__clear": "token"}).is_valid()


def test_a_needed_secret_must_be_there_unless_it_is_set() -> None:
    schema = {"type": "object", "required": ["key"], "properties": {"key": {"type": "string", "format": "password"}}}

    assert SchemaForm(schema, data=QueryDict("p.key="), secrets_set=["key"]).is_valid()
    missing = SchemaForm(schema, data=QueryDict("p.key="))
    assert not missing.is_valid()
    assert list(missing.errors) == ["key"]
    gone = SchemaForm(schema, data=QueryDict("p.key=&p__clear=key"), secrets_set=["key"])
    assert not gone.is_valid()


# -- rows and JSON without JavaScript -----------------------------------------------------------------------------


def test_adding_a_row_keeps_what_was_typed_and_says_nothing_of_faults() -> None:
    more = form({"p.start_url": "", "p.tags.0": "ab", "p.tags.1": "cd", "p__add": "tags"})

    assert not more.is_valid()
    assert more.was_rearranged
    assert not more.errors
    names = dict(Browser(str(more)).pairs)
    assert (names["p.tags.0"], names["p.tags.1"], names["p.tags.2"]) == ("ab", "cd", "")


def test_removing_a_row_moves_the_others_up() -> None:
    fewer = form(GOOD | {"p.sites.0.host": "a", "p.sites.1.host": "b", "p.sites.2.host": "c", "p__remove": "sites.1"})

    assert not fewer.is_valid()
    names = dict(Browser(str(fewer)).pairs)
    assert (names["p.sites.0.host"], names["p.sites.1.host"]) == ("a", "c")


def test_a_row_that_was_there_stays_even_when_it_is_blank_and_a_new_blank_one_goes() -> None:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "boolean"}}}}
        },
    }
    browser = Browser(str(SchemaForm(schema, initial={"rows": [{"on": False}]})))
    filled = SchemaForm(schema, data=browser.data)

    assert filled.is_valid()
    assert filled.parameters == {"rows": [{"on": False}]}


def test_switching_to_json_loses_nothing_that_was_typed() -> None:
    switched = form({"p.start_url": "nonsense", "p.max_pages": "many", "p.login.age": "old", "p__switch": "json"})

    assert not switched.is_valid()
    assert switched.mode == "json"
    assert json.loads(switched.json_text) == {"start_url": "nonsense", "max_pages": "many", "login": {"age": "old"}}


def test_switching_back_from_json_fills_the_form() -> None:
    text = json.dumps({"start_url": "https://a.b/", "tags": ["x1"], "max_pages": "7"})
    switched = form({"p__mode": "json", "p__json": text, "p__switch": "form"})

    assert not switched.is_valid()
    names = dict(Browser(str(switched)).pairs)
    assert (names["p.start_url"], names["p.tags.0"], names["p.max_pages"]) == ("https://a.b/", "x1", "7")


def test_switching_back_is_refused_where_something_would_be_lost() -> None:
    for text in ("{", '{"start_url": "https://a.b/", "odd": 1}', "[]"):
        switched = form({"p__mode": "json", "p__json": text, "p__switch": "form"})
        assert not switched.is_valid()
        assert switched.mode == "json"
        assert switched.general_errors
        assert switched.json_text == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 200_000,
        '{"a":' * 1000,
        '{"start_url": NaN}',
        '{"start_url": 1e999}',
        '{"max_pages": ' + "9" * 5000 + "}",
        '{"start_url": "a", "start_url": "b"}',
        '{"start_url": "\\ud800"}',
        '{"start_url": "https://a.b/\\u0000"}',
        '{"start_url": "https://a.b/", "login": {"\\u0000": 1}}',
        '{"start_url": "https://a.b/", "tags": ["' + "x" * 300_000 + '"]}',
        '{"start_url": "https://a.b/", "token": {"a": 1}}',
        "null",
        '"x"',
        '"' + '\\"' * 100_000,
    ],
    ids=range(15),
)
def test_hostile_json_is_refused_with_a_sentence_of_ours(text: str) -> None:
    refused = form({"p__mode": "json", "p__json": text})

    assert not refused.is_valid()
    assert refused.errors
    assert "<" in str(refused)


def test_ten_megabytes_are_refused_before_they_are_read() -> None:
    refused = form(GOOD | {"p.login.user": "x" * 10_000_000})

    assert not refused.is_valid()
    assert list(refused.errors) == [""]


def test_a_secret_in_the_json_is_taken_out_of_the_parameters() -> None:
    filled = form({"p__mode": "json", "p__json": '{"start_url": "https://a.b/", "token": "hidden one"}'})

    assert filled.is_valid()
    assert filled.parameters == {"start_url": "https://a.b/"}
    assert filled.secrets == {"token": "hidden one"}


def test_what_the_boxes_cannot_hold_is_edited_as_json() -> None:
    assert SchemaForm(SCHEMA, initial={"start_url": "https://a.b/", "tags": ["x\ry"]}).mode == "json"
    many = {"start_url": "https://a.b/", "tags": [f"t{n}" for n in range(500)]}
    assert SchemaForm(SCHEMA, initial=many).mode == "json"


def test_values_are_escaped() -> None:
    page = str(form({"p.start_url": '"><script>alert(1)</script>', "p.tags.0": "</textarea><b>\n"}))

    assert "<script>alert" not in page
    assert "</textarea><b>" not in page


def test_advanced_fields_are_folded_and_open_on_a_fault() -> None:
    assert "<details" in str(SchemaForm(SCHEMA))
    assert "open>" in str(form(GOOD | {"p.depth": "deep"}))
