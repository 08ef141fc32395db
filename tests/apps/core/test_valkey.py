"""One URL for hints, live lines and caches, in the words of each library."""

from __future__ import annotations

import re

import pytest

from apps.core import valkey

THREE = "sentinel://:p%40ss@one:26380;sentinel://two;sentinel://[::1]:3/2?master_name=claw&sentinel_password=door"


def test_a_plain_url_is_handed_on_as_it_is() -> None:
    assert valkey.sentinels("redis://:secret@host:6379/1") is None
    assert valkey.celery_url("redis://:secret@host:6379/1") == "redis://:secret@host:6379/1"
    assert valkey.celery_options("redis://host") == {}
    assert valkey.channel_host("redis://host/0") == {"address": "redis://host/0"}


def test_a_socket_is_spelled_as_celery_wants_it() -> None:
    assert valkey.celery_url("unix:///run/valkey.sock?db=3") == "redis+socket:///run/valkey.sock?virtual_host=3"


def test_sentinels_are_read_with_master_database_and_both_passwords() -> None:
    found = valkey.sentinels(THREE)
    assert found is not None
    assert found.hosts == (("one", 26380), ("two", 26379), ("::1", 3))
    assert (found.master, found.db, found.login) == ("claw", 2, {"password": "p@ss"})
    assert found.asking["password"] == "door"


def test_sentinels_are_spelled_as_celery_and_channels_want_them() -> None:
    login = "sentinel://:p%40ss@"
    assert valkey.celery_url(THREE) == f"{login}one:26380/2;{login}two:26379/2;{login}[::1]:3/2"
    assert valkey.celery_options(THREE)["master_name"] == "claw"
    host = valkey.channel_host(THREE)
    assert (host["master_name"], host["db"], host["password"]) == ("claw", 2, "p@ss")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://host", "begins with http://"),
        ("host:6379", "not with one of redis"),
        ("redis:///0", "names no host"),
        ("redis://one;redis://two", "only sentinel:// takes several"),
        ("sentinel://one/first", "its database is a number"),
        ("sentinel://one?master=claw", "unknown option 'master'"),
    ],
)
def test_what_is_no_address_is_refused_in_words(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        valkey.check(url)
