"""Who gets which answer from every address. An address without a row here fails the walk at the end."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.accounts.services import create_token
from apps.core.actors import SYSTEM
from apps.jobs.models import Clock, Hook, Job, Schedule
from apps.jobs.services.schedules import create_schedule
from apps.runs.models import Batch, Node, Placement, Pool, Run
from apps.runs.states import State
from tests.apps.runs.logged import row, store_items, store_rows
from tests.factories import HookFactory, JobFactory, NodeFactory, PoolFactory, RunFactory, SpiderFactory, UserFactory

# The owner of the project; a member who may only view it; a stranger; nobody signed in; a program with a token of
# the owner that may only read. A dash: not asked.
MATRIX = """
METHOD ADDRESS                             owner member stranger nobody reader

GET    /                                   302   302    302      302    302
GET    /healthz                            200   200    200      200    200
GET    /readyz                             200   200    200      200    200
POST   /preferences/                       302   302    302      302    302

GET    /runs/                              200   200    200      302    302
GET    /runs/rows/?ids={run}               200   200    200      302    302
GET    /runs/{run}/                        200   200    404      302    302
GET    /runs/{run}/?tab=log                200   404    404      302    302
GET    /runs/{run}/?tab=data               200   404    404      302    302
GET    /runs/{run}/?tab=metrics            200   200    404      302    302
GET    /runs/{run}/?tab=parameters         200   200    404      302    302
GET    /runs/{run}/?tab=events             200   200    404      302    302
GET    /runs/{run}/head/                   200   200    404      302    302
GET    /runs/{run}/log/                    200   404    404      302    302
GET    /runs/{run}/log/index/              200   404    404      302    302
GET    /runs/{run}/run.log                 200   404    404      302    302
GET    /runs/{run}/items/new/              200   404    404      302    302
GET    /runs/{run}/items.csv               200   404    404      302    302
GET    /runs/{run}/items.jsonl             200   404    404      302    302
GET    /runs/{run}/samples/                200   200    404      302    302
POST   /runs/{active}/stop/                302   404    404      302    302
POST   /runs/{active}/kill/                302   404    404      302    302
POST   /runs/{active}/pause/               302   404    404      302    302
POST   /runs/{active}/resume/              302   404    404      302    302
GET    /runs/{run}/rerun/                  200   404    404      302    302
POST   /runs/{run}/rerun/                  302   404    404      302    302
POST   /runs/bulk/                         302   302    302      302    302

GET    /nodes/                             200   200    200      302    302
GET    /nodes/{node}/                      200   200    200      302    302
POST   /nodes/{node}/cordon/               404   404    404      302    302
POST   /nodes/{node}/uncordon/             404   404    404      302    302
POST   /nodes/{node}/drain/                404   404    404      302    302
POST   /nodes/{node}/end_drain/            404   404    404      302    302
POST   /nodes/{node}/labels/               404   404    404      302    302
GET    /nodes/maintenance/                 404   404    404      302    302
POST   /nodes/maintenance/                 404   404    404      302    302
POST   /nodes/maintenance/end/             404   404    404      302    302

GET    /pools/                             200   200    200      302    302
GET    /pools/new/                         404   404    404      302    302
POST   /pools/new/                         404   404    404      302    302
GET    /pools/{pool}/edit/                 404   404    404      302    302
POST   /pools/{pool}/edit/                 404   404    404      302    302
GET    /pools/{pool}/delete/               404   404    404      302    302
POST   /pools/{pool}/delete/               404   404    404      302    302

GET    /spiders/                           200   200    200      302    302
GET    /spiders/{spider}/                  200   200    404      302    302

GET    /jobs/                              200   200    200      302    302
GET    /jobs/new/?spider={spider}          200   404    404      302    302
POST   /jobs/new/                          200   404    404      302    302
GET    /jobs/parameters/?spider={spider}   200   404    404      302    302
GET    /jobs/{job}/                        200   200    404      302    302
GET    /jobs/{job}/edit/                   200   404    404      302    302
POST   /jobs/{job}/delete/                 302   404    404      302    302
GET    /jobs/{job}/run/                    200   404    404      302    302
POST   /jobs/{job}/run/                    302   404    404      302    302
GET    /jobs/{job}/ledger/                 200   200    404      302    302
GET    /jobs/{job}/schedules/new/          200   404    404      302    302
POST   /jobs/{job}/schedules/new/          422   404    404      302    302
GET    /jobs/{job}/inputs/                 200   404    404      302    302
POST   /jobs/{job}/inputs/                 200   404    404      302    302

GET    /batches/                           200   200    200      302    302
GET    /batches/{batch}/                   200   200    404      302    302
GET    /batches/{batch}/live/              200   200    404      302    302
POST   /batches/{batch}/stop/              302   404    404      302    302
POST   /batches/{batch}/again/             302   404    404      302    302
GET    /batches/{batch}/items.csv          200   404    404      302    302
GET    /batches/{batch}/items.jsonl        200   404    404      302    302

GET    /schedules/                         200   200    200      302    302
GET    /schedules/calendar/                200   200    200      302    302
GET    /schedules/preview/?job={job}       200   200    404      302    302
GET    /schedules/off/                     404   404    404      302    302
POST   /schedules/off/                     404   404    404      302    302
POST   /schedules/on/                      404   404    404      302    302
GET    /schedules/{schedule}/edit/         200   404    404      302    302
POST   /schedules/{schedule}/edit/         422   404    404      302    302
POST   /schedules/{schedule}/switch/       302   404    404      302    302
POST   /schedules/{schedule}/pause/        302   404    404      302    302
POST   /schedules/{schedule}/resume/       302   404    404      302    302
GET    /schedules/{schedule}/delete/       200   404    404      302    302
POST   /schedules/{schedule}/delete/       302   404    404      302    302
GET    /schedules/{schedule}/backfill/     200   404    404      302    302
POST   /schedules/{schedule}/backfill/     302   404    404      302    302

GET    /jobs/{job}/dependencies/           200   404    404      302    302
POST   /jobs/{job}/dependencies/           302   404    404      302    302
GET    /jobs/{job}/hooks/                  200   404    404      302    302
GET    /jobs/{job}/hooks/new/              200   404    404      302    302
POST   /jobs/{job}/hooks/new/              422   404    404      302    302
POST   /jobs/{job}/hooks/{hook}/renew/     200   404    404      302    302
POST   /jobs/{job}/hooks/{hook}/revoke/    302   404    404      302    302
POST   /hooks/unknown/                     404   404    404      404    404
POST   /hooks/unknown                      404   404    404      404    404

GET    /accounts/login/                    302   302    302      200    200
GET    /accounts/logout/                   200   200    200      302    302
GET    /accounts/inactive/                 200   200    200      200    200
GET    /accounts/signup/                   302   302    302      200    200
GET    /accounts/reauthenticate/           200   200    200      302    302
GET    /accounts/password/change/          200   200    200      302    302
GET    /accounts/email/                    404   404    404      404    404

GET    /api/nowhere/                       404   404    404      404    404
GET    /api/schema/                        200   200    200      401    200
GET    /api/docs/                          200   200    200      401    200
GET    /api/v1/spiders/                    200   200    200      401    200
GET    /api/v1/spiders/{spider}/           200   200    404      401    200
GET    /api/v1/spiders/{spider}/schema/    200   200    404      401    200
POST   /jobs/preview/?job={job}            200   200    404      302    302
GET    /api/v1/jobs/                       200   200    200      401    200
POST   /api/v1/jobs/                       400   400    400      401    403
GET    /api/v1/jobs/{job}/                 200   200    404      401    200
PUT    /api/v1/jobs/{job}/                 400   403    404      401    403
PATCH  /api/v1/jobs/{job}/                 200   403    404      401    403
DELETE /api/v1/jobs/{job}/                 204   403    404      401    403
POST   /api/v1/jobs/{job}/run/             201   403    404      401    403
POST   /api/v1/jobs/preview-parameters/    400   400    400      401    403
POST   /api/v1/schedules/preview/          400   400    400      401    403
GET    /api/v1/jobs/{job}/dependencies/    200   200    404      401    200
PUT    /api/v1/jobs/{job}/dependencies/    400   403    404      401    403
GET    /api/v1/jobs/{job}/hooks/           200   403    404      401    200
POST   /api/v1/jobs/{job}/hooks/           400   403    404      401    403
DELETE /api/v1/jobs/{job}/hooks/{hook}/    204   403    404      401    403
POST   /api/v1/jobs/{job}/hooks/{hook}/renew/ 200 403   404      401    403
GET    /api/v1/jobs/{job}/backfills/       200   200    404      401    200
POST   /api/v1/jobs/{job}/backfills/       400   403    404      401    403
GET    /api/v1/jobs/{job}/inputs/          200   200    404      401    200
POST   /api/v1/jobs/{job}/inputs/          400   403    404      401    403
GET    /api/v1/batches/{batch}/items.csv   200   403    404      401    200
GET    /api/v1/batches/{batch}/items.jsonl 200   403    404      401    200
GET    /api/v1/jobs/{job}/ledger/          200   200    404      401    200
GET    /api/v1/jobs/{job}/ledger/why/      400   400    404      401    400
GET    /api/v1/schedules/                  200   200    200      401    200
POST   /api/v1/schedules/                  400   400    400      401    403
GET    /api/v1/schedules/{schedule}/       200   200    404      401    200
PATCH  /api/v1/schedules/{schedule}/       200   403    404      401    403
DELETE /api/v1/schedules/{schedule}/       204   403    404      401    403
POST   /api/v1/schedules/{schedule}/pause/ 400   403    404      401    403
POST   /api/v1/schedules/{schedule}/resume/ 200  403    404      401    403
GET    /api/v1/scheduling/                 200   200    200      401    200
POST   /api/v1/scheduling/off/             403   403    403      401    403
POST   /api/v1/scheduling/on/              403   403    403      401    403
GET    /api/v1/batches/                    200   200    200      401    200
GET    /api/v1/batches/{batch}/            200   200    404      401    200
POST   /api/v1/batches/{batch}/stop/       200   403    404      401    403
POST   /api/v1/batches/{batch}/again/      409   403    404      401    403
GET    /api/v1/runs/                       200   200    200      401    200
GET    /api/v1/runs/{run}/                 200   200    404      401    200
POST   /api/v1/runs/{active}/stop/         200   403    404      401    403
POST   /api/v1/runs/{active}/kill/         200   403    404      401    403
POST   /api/v1/runs/{active}/pause/        200   403    404      401    403
POST   /api/v1/runs/{active}/resume/       200   403    404      401    403
POST   /api/v1/runs/{run}/rerun/           201   403    404      401    403
POST   /api/v1/runs/bulk/                  400   400    400      401    403
GET    /api/v1/runs/{run}/attempts/        200   200    404      401    200
GET    /api/v1/runs/{run}/events/          200   200    404      401    200
GET    /api/v1/runs/{run}/log/             200   403    404      401    200
GET    /api/v1/runs/{run}/log.txt          200   403    404      401    200
GET    /api/v1/runs/{run}/items/           200   403    404      401    200
GET    /api/v1/runs/{run}/items.csv        200   403    404      401    200
GET    /api/v1/runs/{run}/items.jsonl      200   403    404      401    200
GET    /api/v1/runs/{run}/samples/         200   200    404      401    200
GET    /api/v1/nodes/                      200   200    200      401    200
GET    /api/v1/nodes/{node}/               200   200    200      401    200
POST   /api/v1/nodes/{node}/cordon/        403   403    403      401    403
POST   /api/v1/nodes/{node}/uncordon/      403   403    403      401    403
POST   /api/v1/nodes/{node}/drain/         403   403    403      401    403
POST   /api/v1/nodes/{node}/end-drain/     403   403    403      401    403
POST   /api/v1/nodes/{node}/labels/        403   403    403      401    403
GET    /api/v1/pools/                      200   200    200      401    200
POST   /api/v1/pools/                      403   403    403      401    403
GET    /api/v1/pools/{pool}/               200   200    200      401    200
PUT    /api/v1/pools/{pool}/               403   403    403      401    403
PATCH  /api/v1/pools/{pool}/               403   403    403      401    403
DELETE /api/v1/pools/{pool}/               403   403    403      401    403
"""

HEAD, *LINES = [line.split() for line in MATRIX.splitlines() if line.strip()]
PEOPLE = HEAD[2:]
ROWS = [(method, address, dict(zip(PEOPLE, map(int, answers), strict=True))) for method, address, *answers in LINES]
# What leads elsewhere than to the sign-in page.
ELSEWHERE = {"/", "/preferences/", "/accounts/logout/"}
# Those who may change something last: until then nothing may have changed.
ORDER = ["nobody", "stranger", "member", "reader", "owner"]
PUBLIC = {"/healthz", "/readyz", "/accounts/login/", "/accounts/signup/", "/accounts/inactive/"}


@dataclass
class World:
    """One project with a spider, a job, a finished run with log and data, and an active one."""

    job: Job
    run: Run
    active: Run
    pool: Pool
    hook: Hook
    schedule: Schedule
    batch: Batch
    clients: dict[str, Client]

    def path(self, address: str) -> str:
        names = {"run": self.run.pk, "active": self.active.pk, "job": self.job.pk, "spider": self.job.spider.name}
        names |= {"hook": self.hook.pk, "schedule": self.schedule.pk, "batch": self.batch.pk}
        return address.format(node=self.active.node_id, pool=self.pool.pk, **names)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.fixture
def world(db: None, now: Any) -> World:
    job = JobFactory(spider=SpiderFactory())
    run = RunFactory(job=job, state=State.SUCCEEDED, started_at=now, finished_at=now)
    store_rows(run, [row(1)])
    store_items(run, [{"n": 1}])
    active = RunFactory(job=job, state=State.RUNNING, started_at=now, node=NodeFactory())
    owner, member, stranger = UserFactory(), UserFactory(), UserFactory()
    grant(owner, "owner", job.project)
    grant(member, "view", job.project)
    token = create_token(user=owner, name="reader", scope="read", now=now)[1]
    clients = {
        "owner": signed_in(owner),
        "member": signed_in(member),
        "stranger": signed_in(stranger),
        "nobody": Client(),
        "reader": Client(headers={"authorization": f"Token {token}"}),
    }
    pool = PoolFactory()
    job.pools.add(pool)
    schedule = create_schedule(job=job, by=SYSTEM, now=now, type="cron", cron="@daily")
    batch = Batch.objects.create(project=job.project, job=job, kind="graph", trigger="api", actor="x", created_at=now)
    return World(job, run, active, pool, HookFactory(job=job), schedule, batch, clients)


def ask(client: Client, method: str, path: str) -> Any:
    kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
    return client.generic(method, path, b"{}" if method != "GET" and path.startswith("/api/") else b"", kind)


def state_of(world: World) -> list[Any]:
    """Whatever a refused request must leave as it was."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (Run, Job, Hook, Schedule, Clock, Node, Pool, Placement, Batch)
    ]


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """One world serves every row: what a row does is taken back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def faults_of(world: World, method: str, address: str, answers: dict[str, int]) -> Iterator[str]:
    before = state_of(world)
    for person in ORDER:
        if person == "owner" and state_of(world) != before:
            yield "a refused request changed something"
        answer = ask(world.clients[person], method, world.path(address))
        if answer.status_code != answers[person]:
            yield f"{person} got {answer.status_code}, not {answers[person]}"
        sent_to = answer.get("Location", "")
        to_sign_in = person == "nobody" and answer.status_code == 302 and address not in ELSEWHERE
        if to_sign_in and not sent_to.startswith("/accounts/login/?next="):
            yield f"nobody was sent to {sent_to}"


def test_everyone_gets_the_right_answer_from_every_address(world: World) -> None:
    faults = []
    for method, address, answers in ROWS:
        with undone():
            faults += [f"{method} {address}: {fault}" for fault in faults_of(world, method, address, answers)]
    assert not faults, "\n".join(faults)


def test_without_signing_in_nothing_but_the_way_in_is_open() -> None:
    for _method, address, answers in ROWS:
        if address.split("?")[0] not in PUBLIC:
            assert answers["nobody"] in (302, 401, 403, 404), address


def test_a_stranger_sees_no_name_of_what_is_not_theirs(world: World) -> None:
    world.job.name = "job-of-others"
    world.job.save()
    for method, address, answers in ROWS:
        if method == "GET" and answers["stranger"] == 200:
            body = ask(world.clients["stranger"], method, world.path(address)).content.decode()
            assert "job-of-others" not in body
            assert f"/runs/{world.run.pk}/" not in body


# The walk: what addresses there are is asked of Django, not remembered.

SAMPLES = {"int": "1", "slug": "x", "str": "x", "path": "x", "uuid": "00000000-0000-0000-0000-000000000000"}


def walk(resolver: URLResolver, route: str = "", names: str = "") -> Iterator[tuple[str, str, URLPattern]]:
    """(route, name, pattern) of every address."""
    for each in resolver.url_patterns:
        part = str(each.pattern)
        if isinstance(each, URLResolver):
            yield from walk(each, route + part, f"{names}{each.namespace}:" if each.namespace else names)
        else:
            yield route + part, f"{names}{each.name}", each


def sample_of(route: str) -> str:
    """An address of the route; of a regular expression only those without choices."""
    path = re.sub(r"<(?:(\w+):)?\w+>", lambda found: SAMPLES[found[1] or "str"], route)
    return "/" + re.sub(r"\(\?P<\w+>[^)]*\)", "1", path).replace("^", "").replace("$", "").replace("\\", "")


EVERYTHING = [(route, name, pattern) for route, name, pattern in walk(get_resolver())]
ADMIN = sorted({sample_of(route) for route, name, _ in EVERYTHING if route.startswith("admin/")})


def reached(route: str, pattern: URLPattern) -> bool:
    """Whether the address leads there: some of allauth's are covered by our own 404."""
    try:
        return resolve(sample_of(route)).func is pattern.callback
    except Resolver404:
        return False


def test_every_address_has_a_row() -> None:
    known = {("None", "GET")}  # what is not offered of allauth's, asked for as /accounts/email/
    for method, address, _answers in ROWS:
        found = resolve(re.sub(r"{\w+}", "1", address).split("?")[0])
        known.add((found.view_name, method))
    missing = []
    for route, name, pattern in EVERYTHING:
        if route.startswith("admin/") or not reached(route, pattern):
            continue
        # A viewset says its methods; a page is asked at least once.
        actions = getattr(pattern.callback, "actions", None)
        methods = [method.upper() for method in actions or () if method != "head"]
        methods = methods or [method for asked, method in known if asked == name][:1] or ["some method"]
        missing += [f"{method} /{route} ({name})" for method in methods if (name, method) not in known]
    assert not missing, "no row in MATRIX for:\n" + "\n".join(missing)


def test_the_admin_is_for_staff(world: World) -> None:
    assert len(ADMIN) > 50
    for address in ADMIN:
        for person in ("nobody", "member", "owner", "reader"):
            for method in ("GET", "POST"):
                answer = ask(world.clients[person], method, address)
                assert answer.status_code in (302, 403, 404, 405), f"{person}: {method} {address}"
                if answer.status_code == 302 and not address.endswith(("/login/", "/logout/")):
                    assert "login" in answer["Location"], f"{person}: {method} {address}"


# What the admin shows every member of staff: its frame, and lists that hold only what the person may see.
FRAME = {"/admin/", "/admin/jsi18n/", "/admin/password_change/", "/admin/password_change/done/", "/admin/search/"}
ANCHORED = (
    *("jobs/dependency", "jobs/firing", "jobs/hook", "jobs/job", "jobs/schedule"),
    *("runs/batch", "runs/run", "spiders/project", "spiders/spider", "spiders/version"),
)
LISTS = {f"/admin/{model}/" for model in ANCHORED}


def test_staff_without_rights_sees_the_admin_without_anything_in_it(world: World) -> None:
    client = signed_in(UserFactory(is_staff=True))
    for address in ADMIN:
        answer = ask(client, "GET", address)
        assert (answer.status_code == 200) == (address in FRAME | LISTS), f"{address}: {answer.status_code}"
        if address in LISTS:
            assert world.job.name not in answer.content.decode()
            assert world.job.spider.name not in answer.content.decode()
            assert f"{address}{world.run.pk}/" not in answer.content.decode()
        if address not in FRAME | {"/admin/logout/"}:
            assert ask(client, "POST", address).status_code != 200 or address in LISTS, address
    assert state_of(world)[1][0]["id"] == world.job.pk
