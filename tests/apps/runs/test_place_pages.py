"""Pages of nodes and pools, the switch for maintenance, and who may change any of it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts import rights
from apps.accounts.models import User
from apps.core.actors import SYSTEM, Actor
from apps.core.errors import Invalid
from apps.runs import places, selectors
from apps.runs.models import Node, Placement, Pool, RunEvent
from apps.runs.states import State
from tests.factories import AdminFactory, JobFactory, NodeFactory, PoolFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend=BACKEND)
    return client


def staff(*codenames: str) -> Client:
    user: User = UserFactory(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames, content_type__app_label="runs"))
    return signed_in(user)


@pytest.fixture
def node() -> Node:
    made: Node = NodeFactory(name="crawl-1", slots=4, labels={"zone": "eu"})
    return made


@pytest.fixture
def visitor() -> Client:
    return signed_in(UserFactory())


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


# -- nodes ----------------------------------------------------------------------------------------------------------


def test_everybody_sees_how_the_nodes_are(visitor: Client, node: Node, now: datetime) -> None:
    RunFactory(state=State.RUNNING, node=node)
    NodeFactory(name="crawl-2", heartbeat_at=now - timedelta(minutes=5))
    NodeFactory(name="crawl-3", trouble="The engine does not answer.")
    text = text_of(visitor, "/nodes/")
    for said in ("crawl-1", "Ready", "zone=eu", "Silent", "In trouble", "The engine does not answer."):
        assert said in text
    assert "Maintenance…" not in text


def test_the_page_of_a_node_shows_own_runs_and_counts_the_others(node: Node) -> None:
    user = UserFactory()
    mine, foreign = RunFactory(state=State.RUNNING, node=node), RunFactory(state=State.RUNNING, node=node)
    rights.grant(user, "viewer", mine.job)
    text = text_of(signed_in(user), f"/nodes/{node.pk}/")
    assert f'id="run-{mine.pk}"' in text
    assert f'id="run-{foreign.pk}"' not in text
    assert foreign.job_name not in text
    assert "And 1 run that you may not see." in text


def test_a_node_tells_how_often_runs_changed_hands(visitor: Client, node: Node, now: datetime) -> None:
    """Others' events, other nodes' and what lies back further than a day do not count."""
    run = RunFactory(state=State.RUNNING, node=node)
    here, there = str(Actor("agent", node.name)), str(Actor("agent", "crawl-2"))
    for kind, actor, hours in (
        ("adopted", here, 1),
        ("adopted", here, 23),
        ("adopted", here, 25),
        ("adopted", there, 1),
        ("fenced", here, 2),
        ("state", here, 1),
    ):
        RunEvent.objects.create(run=run, kind=kind, actor=actor, at=now - timedelta(hours=hours))
    glance = selectors.nodes_at_a_glance(now=now, nodes=[node])[0]
    assert (glance.taken_over, glance.fenced) == (2, 1)
    assert "Taken over / lost, 24 h" in text_of(visitor, f"/nodes/{node.pk}/")


def test_who_may_not_change_a_node_sees_no_button(visitor: Client, node: Node) -> None:
    assert 'method="post" action="/nodes/' not in text_of(visitor, f"/nodes/{node.pk}/")


def test_a_node_is_closed_drained_and_opened(node: Node, now: datetime) -> None:
    client, address = staff("change_node"), f"/nodes/{node.pk}/"
    assert client.post(f"{address}cordon/")["Location"] == address
    assert "Closed" in text_of(client, address)
    client.post(f"{address}drain/", {"within": "1h30m"})
    node.refresh_from_db()
    assert node.drain_until is not None
    assert timedelta(minutes=89) < node.drain_until - now < timedelta(minutes=91)
    assert "What still runs is moved in" in text_of(client, address)
    client.post(f"{address}end_drain/")
    client.post(f"{address}uncordon/")
    node.refresh_from_db()
    assert (node.cordoned_at, node.drain_until) == (None, None)
    text = text_of(client, address)
    for said in ("Closed for new runs", "Drained until", "Draining ended", "Opened for new runs"):
        assert said in text


@pytest.mark.parametrize("within", ["", "soon", "8 days", "-5"])
def test_a_drain_without_a_sensible_time_says_so(node: Node, within: str) -> None:
    answer = staff("change_node").post(f"/nodes/{node.pk}/drain/", {"within": within}, follow=True)
    assert "alert-danger" in answer.content.decode()
    node.refresh_from_db()
    assert node.drain_until is None


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("zone", "Line 1 is not name=value."),
        ("a=1\na=2", "a is there twice."),
        ("a=b c", "letters, digits"),
        ("\n".join(f"n{n}=1" for n in range(33)), "at most 32 labels"),
    ],
)
def test_labels_that_make_no_sense_are_refused_in_words(node: Node, typed: str, said: str) -> None:
    answer = staff("change_node").post(f"/nodes/{node.pk}/labels/", {"labels": typed}, follow=True)
    assert said in answer.content.decode()
    node.refresh_from_db()
    assert node.labels == {"zone": "eu"}


def test_labels_are_lines(node: Node) -> None:
    client = staff("change_node")
    client.post(f"/nodes/{node.pk}/labels/", {"labels": " zone = us \n\nbrowser=yes\n"})
    node.refresh_from_db()
    assert node.labels == {"zone": "us", "browser": "yes"}
    assert "Labels set: browser=yes, zone=us" in text_of(client, f"/nodes/{node.pk}/")


def test_changes_by_programs_need_no_person(node: Node, now: datetime) -> None:
    places.cordon(node=node, by=SYSTEM, now=now)
    assert node.cordoned_at == now
    assert not LogEntry.objects.exists()


# -- maintenance ----------------------------------------------------------------------------------------------------


def test_maintenance_is_said_on_every_page(visitor: Client, node: Node) -> None:
    client = staff("change_placement")
    assert client.post("/nodes/maintenance/", {"why": "New <disks>"})["Location"] == "/nodes/"
    for address in ("/runs/", "/jobs/", "/spiders/", "/nodes/", "/pools/", f"/nodes/{node.pk}/"):
        text = text_of(visitor, address)
        assert "Maintenance: nothing new is started." in text
        assert "New &lt;disks&gt;" in text
    assert "End maintenance" in text_of(client, "/nodes/")
    client.post("/nodes/maintenance/end/")
    assert "Maintenance: nothing new is started." not in text_of(visitor, "/runs/")
    own = Placement.objects.get()
    assert (own.maintenance_since, own.maintenance_by, own.maintenance_why) == (None, "", "")


@pytest.mark.parametrize("why", ["", "  ", "x" * 201, "a\x07b"])
def test_maintenance_needs_a_reason(why: str) -> None:
    answer = staff("change_placement").post("/nodes/maintenance/", {"why": why})
    assert answer.status_code == 422
    assert "Say why" in answer.content.decode()
    assert not Placement.objects.filter(maintenance_since__isnull=False).exists()


def test_a_second_reason_keeps_the_time(now: datetime) -> None:
    places.begin_maintenance(by=SYSTEM, now=now, why="disks")
    places.begin_maintenance(by=SYSTEM, now=now + timedelta(hours=1), why="more disks")
    own = Placement.objects.get()
    assert (own.maintenance_since, own.maintenance_why) == (now, "more disks")


def test_the_right_on_nodes_is_none_on_the_maintenance() -> None:
    assert staff("change_node").post("/nodes/maintenance/", {"why": "x"}).status_code == 404


# -- pools ----------------------------------------------------------------------------------------------------------


def test_everybody_sees_the_pools_and_what_is_used(visitor: Client) -> None:
    pool = PoolFactory(name="shop.example", limit=3)
    RunFactory(state=State.RUNNING, pools=[pool.pk])
    text = text_of(visitor, "/pools/")
    assert "shop.example" in text
    assert re.search(r"<span>1 <span class=\"claw-muted\">/ 3</span></span>", text)
    assert "/pools/new/" not in text
    assert f"/pools/{pool.pk}/" not in text


def test_a_pool_is_made_and_changed() -> None:
    client = staff("add_pool", "change_pool")
    client.post("/pools/new/", {"name": "shop.example", "limit": "3", "description": "Be kind."})
    pool = Pool.objects.get()
    assert (pool.name, pool.limit, pool.description) == ("shop.example", 3, "Be kind.")
    assert 'value="shop.example"' in text_of(client, f"/pools/{pool.pk}/edit/")
    client.post(f"/pools/{pool.pk}/edit/", {"name": "shop.example", "limit": "9"})
    pool.refresh_from_db()
    assert pool.limit == 9


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": "", "limit": "1"}, "This field is required."),
        ({"name": "taken.example", "limit": "1"}, "There is a pool of this name already."),
        ({"name": "a,b", "limit": "1"}, "no comma"),
        ({"name": "x", "limit": "0"}, "greater than or equal to 1"),
        ({"name": "x", "limit": "10001"}, "less than or equal to 10000"),
        ({"name": "x", "limit": "many"}, "Enter a whole number."),
    ],
)
def test_a_pool_that_makes_no_sense_is_shown_again_with_the_reason(form: dict[str, str], said: str) -> None:
    PoolFactory(name="taken.example")
    answer = staff("add_pool").post("/pools/new/", form)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert Pool.objects.count() == 1


def test_a_pool_in_use_is_deleted_only_on_purpose() -> None:
    user = UserFactory(is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="delete_pool"))
    client, pool = signed_in(user), PoolFactory()
    mine, foreign = JobFactory(name="my job"), JobFactory(name="their job")
    rights.grant(user, "view", mine)
    for job in (mine, foreign):
        job.pools.add(pool)
    text = text_of(client, f"/pools/{pool.pk}/delete/")
    assert "my job" in text
    assert "their job" not in text
    assert "1 job that you may not see" in text
    refused = client.post(f"/pools/{pool.pk}/delete/", follow=True).content.decode()
    assert "2 jobs use the pool" in refused
    assert Pool.objects.exists()
    client.post(f"/pools/{pool.pk}/delete/", {"detach": "1"})
    assert not Pool.objects.exists()
    assert list(mine.pools.all()) == []


def test_each_right_on_pools_is_its_own() -> None:
    pool = PoolFactory()
    client = staff("change_pool")
    assert client.get(f"/pools/{pool.pk}/edit/").status_code == 200
    assert client.get("/pools/new/").status_code == 404
    assert client.post(f"/pools/{pool.pk}/delete/").status_code == 404


@pytest.mark.parametrize("address", ["/nodes/", "/pools/", "/nodes/{node}/"])
def test_a_page_costs_few_queries(address: str, node: Node) -> None:
    for _ in range(8):
        RunFactory(state=State.RUNNING, node=node, pools=[PoolFactory().pk])
        NodeFactory()
    client = signed_in(AdminFactory())
    path = address.format(node=node.pk)
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    assert len(queries) <= 12, [query["sql"][:120] for query in queries]


# -- the admin ------------------------------------------------------------------------------------------------------


def test_the_admin_offers_the_same_for_runs() -> None:
    client = signed_in(AdminFactory())
    running, over = RunFactory(state=State.RUNNING), RunFactory(state=State.FAILED)
    for action, column in (("pause", "pause_requested_at"), ("kill", "kill_requested_at")):
        form = {"action": action, "_selected_action": [running.pk, over.pk]}
        text = client.post(reverse("admin:runs_run_changelist"), form, follow=True).content.decode()
        assert f"#{running.pk}" in text
        assert f"Run {over.pk}" in text
        running.refresh_from_db()
        assert getattr(running, column) is not None


def test_the_admin_closes_drains_and_opens_nodes(node: Node) -> None:
    client = staff("change_node")
    for action, closed, drained in (("cordon", True, False), ("drain", True, True), ("uncordon", False, False)):
        client.post(reverse("admin:runs_node_changelist"), {"action": action, "_selected_action": [node.pk]})
        node.refresh_from_db()
        assert (node.cordoned_at is not None, node.drain_until is not None) == (closed, drained)
    assert staff().get(reverse("admin:runs_node_changelist")).status_code == 403


def test_the_admin_keeps_pools_by_the_same_rules() -> None:
    client = signed_in(AdminFactory())
    client.post(reverse("admin:runs_pool_add"), {"name": "shop.example", "limit": "3", "description": ""})
    pool = Pool.objects.get()
    client.post(reverse("admin:runs_pool_change", args=(pool.pk,)), {"name": "shop.example", "limit": "7"})
    pool.refresh_from_db()
    assert pool.limit == 7
    JobFactory().pools.add(pool)
    answer = client.post(reverse("admin:runs_pool_delete", args=(pool.pk,)), {"post": "yes"}, follow=True)
    assert "1 job uses the pool" in answer.content.decode()
    assert Pool.objects.exists()
    assert list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True)) == ["created", "changed: 7"]


def test_the_limit_over_all_nodes_is_the_superusers() -> None:
    client = signed_in(AdminFactory())
    client.post(reverse("admin:runs_placement_add"), {"max_running": "20"})
    assert Placement.objects.get().max_running == 20
    client.post(reverse("admin:runs_placement_change", args=(1,)), {"max_running": ""})
    assert Placement.objects.get().max_running is None
    assert client.get(reverse("admin:runs_placement_add")).status_code == 403
    assert staff("change_placement").get(reverse("admin:runs_placement_changelist")).status_code == 403


def test_no_run_at_once_is_no_limit(now: datetime) -> None:
    with pytest.raises(Invalid):
        places.set_max_running(by=SYSTEM, now=now, most=0)
