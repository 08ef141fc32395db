"""What a run must not show is shown as three stars, in every spelling."""

import base64
import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from apps.engine.redact import HIDDEN, Redactor

LOGS = Path(__file__).parent.parent / "cases" / "logs"
SECRET = 'pä55 w0rd/"+x='


def test_well_known_shapes_are_hidden_without_knowing_the_value():
    text = Redactor().redact((LOGS / "secrets.log").read_text())
    for value in ("s3cr3t-proxy-pass", "cprun_0123", "pa55word", "EXAMPLEKEY", "abc123", "hunter2"):
        assert value not in text
    assert text.splitlines() == [
        "Using proxy http://user:***@proxy.test:8080",
        "Authorization: Bearer ***",
        "postgres://panel:***@db.test/panel",
        "AWS_SECRET_ACCESS_KEY=***",
        "Set-Cookie: sessionid=***; Path=/",
        "password=***&x=1",
    ]


@pytest.mark.parametrize(
    "line",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        json.dumps({"k": SECRET}),
        json.dumps({"k": SECRET}, ensure_ascii=False),
        repr({"k": SECRET}),
        "x" + base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"user" + SECRET.encode() + b"tail").decode(),
    ],
)
def test_the_value_is_hidden_in_every_spelling(line):
    hidden = Redactor([SECRET]).redact(f"before {line} after")
    assert HIDDEN in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    assert "w0rd" not in hidden
    assert base64.b64encode(SECRET.encode()).decode()[:8] not in hidden


def test_a_longer_secret_wins_over_one_inside_it():
    assert Redactor(["abcd", "abcdefgh"]).redact("abcdefgh abcd") == "*** ***"


def test_each_line_of_a_key_file_is_hidden():
    key = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJq83vEj\n-----END KEY-----\n"
    assert "MIIE" not in Redactor([key]).redact(key)
    assert Redactor([key]).redact(key).count("\n") == key.count("\n")


@pytest.mark.parametrize("value", ["", "a", "abc", "\n"])
def test_values_too_short_to_be_secret_do_not_star_the_log(value):
    assert Redactor([value]).redact("a b c abc\n") == "a b c abc\n"


@pytest.mark.parametrize(
    "line",
    [
        "GET https://demo.test/a:b@c",
        "https://demo.test/?next=http://x.test/",
        "the password is never printed",
        "tokens: 12",
        "cookie policy accepted",
        "2026-03-08 01:59:59 [scrapy.core.engine] INFO: Spider opened",
    ],
)
def test_ordinary_lines_stay_as_they_are(line):
    assert Redactor([SECRET]).redact(line) == line


def test_a_record_is_changed_only_where_a_value_of_the_run_stands():
    redactor = Redactor(["topsecret"])
    assert redactor.holds_secret(b'{"a":"topsecret"}')
    assert redactor.redact_values(b'{"a":"topsecret","password":"kept"}') == b'{"a":"***","password":"kept"}'


def test_lines_without_hits_are_passed_fast():
    block = (
        "fetched https://demo.test/catalogue/page-00012 in 31 ms, 20 items, queue at 113 waiting requests, fine\n"
        * 2500
    )
    redactor = Redactor([f"secret-value-{n}" for n in range(10)])
    best = min(_seconds(redactor, block) for _ in range(5))
    assert 2500 / best > 150_000, f"{2500 / best:,.0f} lines/s"


def test_hostile_lines_do_not_slow_the_patterns():
    redactor = Redactor()
    lines = [
        "://" * 20_000,
        "authorization: " + " " * 60_000,
        "cookie:" * 9_000,
        "_" * 50_000 + "password",
        "a-" * 30_000 + "secret",
        "-_" * 32_000 + " token",
        ("a-" * 20 + "password ") * 1300,
        "cookie: " * 8_000,
    ]
    for line in lines:
        assert _seconds(redactor, line) < 0.1, line[:20]


def test_each_cookie_of_a_line_and_each_part_of_a_name_is_looked_at():
    line = (
        "cookie: a=1; Set-Cookie: b=2; my-cookie=3; sessionid=abc; cookie-policy x; "
        + "x" * 60
        + "_db_password=hunter2"
    )
    assert "abc" not in Redactor().redact(line)
    assert "hunter2" not in Redactor().redact(line)


def _seconds(redactor: Redactor, block: str) -> float:
    started = time.process_time()
    redactor.redact(block)
    return time.process_time() - started
