"""Policies in words."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from apps.jobs.models import Job
from apps.jobs.tables import policy_rows, retry_words
from apps.runs.models import Pool
from apps.runs.policies import RetryPolicy
from tests.factories import AdminFactory, JobFactory


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({}, "It is not tried again."),
        ({"attempts": 2}, "Tries again once, after 30s."),
        ({"attempts": 4}, "Tries again up to 3 times, after 30s, 1m, 2m."),
        ({"attempts": 9}, "Tries again up to 8 times, after 30s, 1m, 2m, 4m and so on."),
        ({"attempts": 3, "backoff": "fixed", "delay_seconds": 300}, "Tries again up to 2 times, after 5m each time."),
        ({"attempts": 3, "factor": 1}, "Tries again up to 2 times, after 30s each time."),
        ({"attempts": 4, "backoff": "list", "delays": [5, 3600]}, "Tries again up to 3 times, after 5s, 1h, 1h."),
        ({"attempts": 3, "cap_seconds": 45}, "Tries again up to 2 times, after 30s, 45s."),
        (
            {"attempts": 2, "causes": ["timeout", "exit"], "codes": [1, 75], "never_codes": [2]},
            "Tries again once, after 30s. Only when it ends with an error or takes too long. Only with exit code 1, 75."
            " Never with exit code 2.",
        ),
    ],
)
def test_a_retry_policy_is_said_in_a_sentence(policy: dict[str, Any], words: str) -> None:
    with translation.override("en"):
        assert retry_words(RetryPolicy.read(policy)) == words


@pytest.mark.parametrize(
    ("overlap", "most", "words"),
    [
        ("skip", None, "A new run is skipped."),
        ("queue", None, "New runs wait for the earlier ones; at most 100 wait."),
        ("queue", 1, "A new run waits for the earlier one; at most 1 waits."),
        ("allow", None, "Runs go side by side, as many as there are places."),
        ("allow", 3, "At most 3 runs go side by side."),
        ("replace", None, "A new run stops the earlier one and takes its place."),
    ],
)
@pytest.mark.django_db
def test_an_overlap_is_said_in_a_sentence(overlap: str, most: int | None, words: str) -> None:
    rows = policy_rows(JobFactory(overlap=overlap, overlap_max=most), may_see_repair=True)

    assert rows[0].sentence == words


@pytest.mark.django_db
def test_the_page_of_a_job_says_its_policies(client: Client) -> None:
    repair = JobFactory(name="mend")
    job: Job = JobFactory(
        spider=repair.spider,
        repair_job=repair,
        idle_seconds=600,
        timeout_seconds=5400,
        on_node_lost="wait",
        selector={"zone": "eu"},
        retry={"attempts": 3, "items": "replace", "infrastructure": 0},
    )
    job.pools.add(Pool.objects.create(name="shop.example", limit=3))
    client.force_login(AdminFactory(), backend="allauth.account.auth_backends.AuthenticationBackend")

    text = client.get(f"/jobs/{job.pk}/").content.decode()

    for words in (
        "Tries again up to 2 times, after 30s, 1m.",
        "Replaced by those of the next attempt.",
        "It is not started again. When the node falls silent the run waits until it is back.",
        "Job mend",
        f'href="/jobs/{repair.pk}/"',
        "shop.example (3 at once)",
        "zone=eu",
        "10m",
        "1h 30m",
    ):
        assert words in text
    assert "mend" not in str(policy_rows(job, may_see_repair=False))
