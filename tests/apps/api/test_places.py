"""Nodes and pools over the API: everybody looks, staff with the permission changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from rest_framework.test import APIClient

from apps.runs.models import Node, Pool
from apps.runs.states import State
from tests.factories import MIB, JobFactory, NodeFactory, PoolFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db


def staff(*codenames: str, is_staff: bool = True) -> APIClient:
    user: Any = UserFactory(is_staff=is_staff)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames, content_type__app_label="runs"))
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.fixture
def node() -> Node:
    return NodeFactory(name="crawl-1", slots=4, memory_bytes=2048 * MIB, labels={"zone": "eu"})


def test_a_node_shows_what_its_runs_take_of_it(node):
    RunFactory(state=State.RUNNING, node=node, cpus=1.5)
    RunFactory(state=State.PAUSED, node=node, cpus=0.5)
    RunFactory(state=State.SUCCEEDED, node=node)
    answer = staff().get(f"/api/v1/nodes/{node.pk}/").data
    assert (answer["slots"], answer["slots_used"]) == (4, 2)
    assert (answer["memory_used_bytes"], answer["cpus_used"]) == (1024 * MIB, 2.0)
    assert (answer["state"], answer["labels"]) == ("ready", {"zone": "eu"})
    assert (answer["runs_taken_over_24h"], answer["runs_fenced_24h"]) == (0, 0)
    assert staff().get("/api/v1/nodes/").data["results"][0] == answer


def test_the_state_of_a_node_is_the_one_that_matters_most(node, now):
    client = staff()

    def state() -> str:
        return str(client.get(f"/api/v1/nodes/{node.pk}/").data["state"])

    for change, expected in (
        ({"cordoned_at": now}, "closed"),
        ({"drain_until": now}, "draining"),
        ({"trouble": "The engine does not answer."}, "trouble"),
        ({"heartbeat_at": now - timedelta(minutes=1)}, "silent"),
    ):
        Node.objects.filter(pk=node.pk).update(**change)
        assert state() == expected


def test_closing_draining_and_opening_a_node(node, now):
    client, address = staff("change_node"), f"/api/v1/nodes/{node.pk}"
    assert client.post(f"{address}/cordon/").data["cordoned_at"] is not None
    drained = client.post(f"{address}/drain/", {"within": "1h30m"}, format="json").data
    assert drained["state"] == "draining"
    node.refresh_from_db()
    assert timedelta(minutes=89) < node.drain_until - now < timedelta(minutes=91)
    ended = client.post(f"{address}/end-drain/").data
    assert (ended["drain_until"], ended["state"]) == (None, "closed")
    client.post(f"{address}/drain/", {"within": 0}, format="json")
    opened = client.post(f"{address}/uncordon/").data
    assert (opened["state"], opened["drain_until"]) == ("ready", None)
    words = list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))
    assert [word.partition(":")[0] for word in words] == ["cordoned", "drain", "drain_ended", "drain", "uncordoned"]


@pytest.mark.parametrize("within", [-1, "8d", "soon", None, True, [], 10**12, 1.5, "", "9" * 400])
def test_a_drain_without_a_sensible_time_is_refused(node, within):
    answer = staff("change_node").post(f"/api/v1/nodes/{node.pk}/drain/", {"within": within}, format="json")
    assert answer.status_code == 400
    assert "within" in answer.data["fields"]
    node.refresh_from_db()
    assert node.drain_until is None


@pytest.mark.parametrize(
    "labels", [{"": "x"}, {"zone": ""}, {"a b": "x"}, {"zone": "x" * 64}, {"zone": "é"}, {"-": "x"}, ["zone"], "zone"]
)
def test_labels_are_short_words(node, labels):
    answer = staff("change_node").post(f"/api/v1/nodes/{node.pk}/labels/", {"labels": labels}, format="json")
    assert answer.status_code == 400
    assert any(place.startswith("labels") for place in answer.data["fields"])
    node.refresh_from_db()
    assert node.labels == {"zone": "eu"}


def test_labels_are_set_all_at_once(node):
    body = {"labels": {"browser": "yes", "rack": "b-12"}}
    assert (
        staff("change_node").post(f"/api/v1/nodes/{node.pk}/labels/", body, format="json").data["labels"]
        == body["labels"]
    )


@pytest.mark.parametrize(("rights", "is_staff"), [((), True), (("change_node",), False)])
def test_who_may_not_change_nodes_is_told_so(node, rights, is_staff):
    client = staff(*rights, is_staff=is_staff)
    for action, body in (("cordon", {}), ("drain", {"within": 5}), ("labels", {"labels": {}}), ("drain", {})):
        assert client.post(f"/api/v1/nodes/{node.pk}/{action}/", body, format="json").status_code == 403
    assert staff().post("/api/v1/nodes/999999/cordon/").status_code == 404


def test_a_pool_is_made_changed_and_deleted():
    client = staff("add_pool", "change_pool", "delete_pool")
    made = client.post("/api/v1/pools/", {"name": "shop.example", "limit": 3}, format="json")
    assert made.status_code == 201
    address = f"/api/v1/pools/{made.data['id']}/"
    assert made.data == {**made.data, "used": 0, "jobs": 0, "description": ""}
    assert client.patch(address, {"limit": 5}, format="json").data["limit"] == 5
    sent_back = client.get(address).data
    assert client.put(address, sent_back, format="json").data == sent_back
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404


def test_a_pool_counts_the_runs_that_are_in_it_now():
    pool = PoolFactory(limit=3)
    for state in (State.RUNNING, State.STARTING, State.QUEUED, State.FAILED):
        RunFactory(state=state, pools=[pool.pk])
    assert staff().get(f"/api/v1/pools/{pool.pk}/").data["used"] == 2


def test_a_pool_that_jobs_use_is_deleted_only_on_purpose():
    pool, client = PoolFactory(), staff("delete_pool")
    job = JobFactory()
    job.pools.add(pool)
    refused = client.delete(f"/api/v1/pools/{pool.pk}/")
    assert (refused.status_code, refused.data["code"]) == (409, "pool_in_use")
    assert "1 job uses the pool" in refused.data["detail"]
    assert client.delete(f"/api/v1/pools/{pool.pk}/?detach=true").status_code == 204
    assert list(job.pools.all()) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "limit": 1}, "name"),
        ({"name": "a,b", "limit": 1}, "name"),
        ({"name": "taken.example", "limit": 1}, "name"),
        ({"name": "x", "limit": 0}, "limit"),
        ({"name": "x", "limit": 10_001}, "limit"),
        ({"name": "x"}, "limit"),
        ({"name": "x", "limit": 1, "size": 2}, "size"),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused_at_its_field(body, field):
    PoolFactory(name="taken.example")
    answer = staff("add_pool").post("/api/v1/pools/", body, format="json")
    assert answer.status_code == 400
    assert field in answer.data["fields"]
    assert Pool.objects.count() == 1


def test_each_right_on_pools_is_its_own():
    pool = PoolFactory()
    address = f"/api/v1/pools/{pool.pk}/"
    changer = staff("change_pool")
    assert changer.patch(address, {"limit": 2}, format="json").status_code == 200
    assert changer.post("/api/v1/pools/", {"name": "x", "limit": 1}, format="json").status_code == 403
    assert changer.delete(address).status_code == 403
