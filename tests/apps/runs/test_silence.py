"""A run whose node says nothing is not shown as if all were well."""

from __future__ import annotations

from datetime import datetime

import pytest

from apps.runs import selectors
from apps.runs.states import State
from apps.runs.views.story import telling
from tests.apps.runs.placed import a_run, ago
from tests.factories import NodeFactory

pytestmark = pytest.mark.django_db


def test_a_node_that_answers_is_no_news(now: datetime) -> None:
    assert selectors.silence(a_run(node=NodeFactory(heartbeat_at=ago(20))), now) == ""


def test_a_run_that_is_over_does_not_wait_for_its_node(now: datetime) -> None:
    assert selectors.silence(a_run(State.SUCCEEDED, node=NodeFactory(heartbeat_at=ago(500))), now) == ""


def test_the_page_says_when_the_attempt_will_count_as_lost(now: datetime) -> None:
    run = a_run(node=NodeFactory(name="a", heartbeat_at=ago(45)))
    assert selectors.silence(run, now) in {
        f"Node a has not answered for {seconds} seconds. After 2 minutes this attempt counts as lost."
        for seconds in (44, 45, 46)
    }


def test_the_page_says_that_the_run_stays_with_its_node(now: datetime) -> None:
    run = a_run(node=NodeFactory(name="a", heartbeat_at=ago(330)), order={"on_node_lost": "wait"})
    sentence = "Node a has not answered for 5 minutes. The run stays with it until it is back."
    assert telling(run, now).text == sentence


def test_a_stop_that_cannot_be_seen_through_is_shown_as_a_request(now: datetime) -> None:
    run = a_run(State.STOPPING, node=NodeFactory(name="a", heartbeat_at=ago(90.4)), stop_requested_at=ago(3))
    assert telling(run, now).text == "Stop requested, but node a has not answered for 90 seconds."
