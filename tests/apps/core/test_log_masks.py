"""The address of a webhook stands in no log."""

from __future__ import annotations

import io
import logging
import logging.config
import sys

import pytest
from daphne.access import AccessLogGenerator
from django.conf import settings
from django.test import Client
from django.utils.log import configure_logging

from apps.core.log_masks import masked
from clawpanel import masking

TOKEN = "wYnfmyXnIkOXP-yTA5JJ_vJ440nQef99rAKR-CfBPQk"


@pytest.mark.parametrize(
    "text",
    [
        f"Not Found: /hooks/{TOKEN}/",
        f"Not Found: /hooks/{TOKEN}",
        f'"POST /hooks/{TOKEN}/?a=1 HTTP/1.1" 202',
        f"http://panel.example:8000/hooks/{TOKEN}/",
        f"/hooks/{TOKEN[:30]}%20x/",
        f"/hooks/{TOKEN}/ and /hooks/{TOKEN}/",
    ],
)
def test_the_address_of_a_hook_is_masked(text: str) -> None:
    assert TOKEN[:30] not in masked(text)
    assert "/hooks/***" in masked(text)


@pytest.mark.parametrize("text", ["/jobs/5/hooks/12/revoke/", "/api/v1/jobs/5/hooks/", "see docs/hooks/readme"])
def test_other_addresses_stay_readable(text: str) -> None:
    assert masked(text) == text


def test_whatever_django_logs_of_a_hook_is_masked(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    stream = io.StringIO()
    with monkeypatch.context() as changed:
        changed.setattr(sys, "stderr", stream)
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        try:
            Client().post(f"/hooks/{TOKEN}/", b"{}", "application/json")
            logging.getLogger("django.request").error("It broke", exc_info=ValueError(f"/hooks/{TOKEN}/"))
        finally:
            changed.undo()
            configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    said = stream.getvalue()
    assert "Not Found: /hooks/***" in said
    assert "ValueError: /hooks/***" in said
    assert TOKEN not in said
    assert not logging.getLogger("django").handlers


def test_the_access_log_of_daphne_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AccessLogGenerator, "write_entry", AccessLogGenerator.write_entry)
    masking.install()
    masking.install()
    stream = io.StringIO()
    details = {"client": "192.0.2.1:1", "method": "POST", "path": f"/hooks/{TOKEN}/", "status": 202, "size": 5}
    AccessLogGenerator(stream)("http", "complete", details)  # type: ignore[no-untyped-call]
    assert '"POST /hooks/***/" 202 5' in stream.getvalue()
