"""The factories make rows the database takes."""

from __future__ import annotations

import pytest

from tests.factories import AttemptFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db


def test_a_run_comes_with_all_it_hangs_on() -> None:
    run = RunFactory(job__spider__version__name="2.0")

    assert run.version == run.job.spider.current_version
    assert run.version.spider == run.spider
    assert run.spec["version"] == "2.0"


def test_an_attempt_comes_with_its_run() -> None:
    assert AttemptFactory().run.pk


def test_a_password_is_hashed_when_given() -> None:
    assert UserFactory(password="correct horse").check_password("correct horse")
