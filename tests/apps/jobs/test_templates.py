"""Templates of jobs: filled in once a run, for the time it stands for."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils.html import escape

from apps.accounts.models import User
from apps.core.actors import person
from apps.core.errors import Invalid
from apps.jobs.models import CallHost, Dependency, Job
from apps.jobs.services import Launch, create_job, launch, run_job, update_job
from apps.jobs.services.rendering import filled_in, prepare, prepare_waiting, preparing
from apps.jobs.services.turns import note_turn
from apps.runs import reasons
from apps.runs.models import Batch, Run
from apps.runs.services import request_stop, rerun
from apps.runs.states import State, Trigger
from apps.spiders.models import Spider
from tests.factories import JobFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

SCHEMA = {
    "type": "object",
    "properties": {
        "since": {"type": "string", "format": "date"},
        "pages": {"type": "integer", "minimum": 1},
        "deep": {"type": "boolean"},
        "size": {"enum": ["small", "large"]},
        "note": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "integer"}},
        "token": {"type": "string", "writeOnly": True},
    },
}
# 00:05 of the 30th in Shanghai.
SLOT = datetime(2026, 11, 29, 16, 5, tzinfo=UTC)


@pytest.fixture
def spider() -> Spider:
    return SpiderFactory(
        kind="command", version__parameter_schema=SCHEMA, version__command=["crawl", "--day={{ today }}"]
    )


@pytest.fixture
def user() -> User:
    return UserFactory(is_superuser=True)


def made(spider: Spider, user: User, now: datetime, **parameters: Any) -> Job:
    return create_job(by=user, now=now, spider=spider, name="daily", parameters=parameters)


def launched(job: Job, user: User, now: datetime, **wanted: Any) -> Run:
    chosen = Launch(**{"job": job, "trigger": Trigger.MANUAL, "zone": "Asia/Shanghai", "scheduled_for": SLOT} | wanted)
    return launch(wanted=chosen, by=person(user), now=now)[0]


def test_yesterday_is_the_day_before_the_due_time_however_late_it_starts(
    spider: Spider, user: User, now: datetime
) -> None:
    job = made(spider, user, now, since="{{ yesterday }}")

    run = launched(job, user, SLOT + timedelta(hours=2))

    assert run.spec["parameters"]["since"] == "2026-11-29"
    assert run.spec["templates"]["parameters"] == {"since": "{{ yesterday }}"}
    assert run.spec["command"] == ["crawl", "--day=2026-11-30"]
    # What was filled in is stored: an attempt of the next day, and the run once more, have the same values.
    again = rerun(run=run, by=person(user), now=SLOT + timedelta(days=1), trigger=Trigger.MANUAL)
    assert again.spec["parameters"] == run.spec["parameters"]
    assert again.spec["command"] == run.spec["command"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("pages", '{{ scheduled_for | date:"%d" }}', 30),
        ("pages", "{{ job.id }}", None),
        ("deep", '{{ "true" }}', True),
        ("size", '{{ "LARGE" | lower }}', "large"),
        ("note", "{{ job.id }}", None),
    ],
)
def test_a_value_becomes_the_type_that_the_schema_asks_for(
    spider: Spider, user: User, now: datetime, name: str, text: str, value: Any
) -> None:
    job = made(spider, user, now, **{name: text})

    run = launched(job, user, now)

    wanted = value if value is not None else job.pk if name == "pages" else str(job.pk)
    assert run.spec["parameters"][name] == wanted
    assert type(run.spec["parameters"][name]) is type(wanted)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pages", "{{ today }}"),
        ("since", "{{ job.name }}"),
        ("size", "{{ today }}"),
        ("note", "{{ toady }}"),
        ("note", "{{ node.name }}"),
        ("note", "{{ params.pages }}"),
        ("note", "{{ upstream.nobody.count }}"),
        ("note", "{{ call.nothing.x }}"),
        ("note", "{% debug %}"),
        ("note", "today }}"),
        ("rows", "{{ today }}"),
    ],
)
def test_what_cannot_become_a_value_is_refused_on_save_at_its_field(
    spider: Spider, user: User, now: datetime, name: str, text: str
) -> None:
    with pytest.raises(Invalid) as refused:
        made(spider, user, now, **{name: text})
    assert list(refused.value.fields) == [f"parameters.{name}"]
    assert not Job.objects.exists()


def test_a_value_with_braces_is_not_read_again(spider: Spider, user: User, now: datetime) -> None:
    job = made(spider, user, now, note="{{ '{{ yesterday }}' }}")
    assert launched(job, user, now).spec["parameters"]["note"] == "{{ yesterday }}"


def test_a_run_knows_its_own_number(spider: Spider, user: User, now: datetime) -> None:
    job = made(spider, user, now, note="run {{ run.id }}")

    run = launched(job, user, now)

    assert run.spec["parameters"]["note"] == f"run {run.pk}"


def test_the_same_key_gives_the_run_of_then_although_the_day_is_another(
    spider: Spider, user: User, now: datetime
) -> None:
    job = made(spider, user, now, since="{{ yesterday }}", note="{{ run.id }} {{ now }}")
    first, new = run_job(job=job, by=person(user), now=now, trigger=Trigger.API, idempotency_key="k")

    second, new_again = run_job(
        job=job, by=person(user), now=now + timedelta(days=3), trigger=Trigger.API, idempotency_key="k"
    )

    assert (new, new_again) == (True, False)
    assert second.pk == first.pk


def test_dates_cost_no_statement(spider: Spider, user: User, now: datetime, django_assert_num_queries: Any) -> None:
    job = made(spider, user, now, since="{{ yesterday }}", note="{{ job.name }}")
    job = update_job(job=job, by=user, now=now, arguments=["{{ params.since }}"])
    version = job.spider.current_version
    assert version is not None
    assert job.project
    with django_assert_num_queries(0):
        filled_in(job=job, version=version, parameters=job.parameters, env={}, instant=SLOT, zone="UTC", now=now)


HOSTILE = ["$(id)", "`id`", "; rm -rf /", "a\nb", "--help", "&& true", "* ? ~", "'\""]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_value_is_one_argument(spider: Spider, user: User, now: datetime, text: str) -> None:
    job = made(spider, user, now, note=text)
    job = update_job(job=job, by=user, now=now, arguments=["--note={{ params.note }}", "{{ params.note }}"])

    command = launched(job, user, now).spec["command"]

    assert command[2:] == [f"--note={text}", text]


def test_the_node_is_filled_in_at_the_start(spider: Spider, user: User, now: datetime) -> None:
    job = made(spider, user, now)
    job = update_job(
        job=job,
        by=user,
        now=now,
        arguments=["--at={{ node.name | upper }}-{{ yesterday }}"],
        env={"N": "{{ node.name }}"},
    )

    spec = launched(job, user, now).spec

    assert spec["later"] == {"command": {"2": ["--at=", ["upper"], "-", "2026-11-29"]}, "env": {"N": [[]]}}
    assert spec["command"][2] == "--at={{ node.name | upper }}-{{ yesterday }}"


# -- upstream ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def upstream(spider: Spider) -> Job:
    return JobFactory(spider=spider, project=spider.project, name="a b")


@pytest.fixture
def child(spider: Spider, user: User, now: datetime, upstream: Job) -> Job:
    job = made(spider, user, now)
    Dependency.objects.create(job=job, upstream=upstream)
    return update_job(job=job, by=user, now=now, parameters={"pages": '{{ upstream."a b".count }}'})


def test_a_run_waits_for_the_output_of_the_job_before_it(child: Job, upstream: Job, user: User, now: datetime) -> None:
    run = launched(child, user, now)
    assert run.state == State.WAITING

    state = prepare(run_id=run.pk, now=now, upstream={"a b": {"count": 12}})

    run.refresh_from_db()
    assert (state, run.state) == (State.QUEUED, State.QUEUED)
    assert run.spec["parameters"]["pages"] == 12
    assert "pending" not in run.spec
    assert prepare(run_id=run.pk, now=now) == ""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({}, "count"),
        ({"count": "many"}, "whole number"),
        ({"count": [1]}, "whole number"),
        ({"count": 0}, "at least 1"),
        ({"count": "x" * 65536}, "whole number"),
        ({"count": "; rm -rf /\n\"'"}, "whole number"),
    ],
)
def test_a_run_whose_values_are_missing_or_wrong_fails_and_never_runs(
    child: Job, user: User, now: datetime, output: dict[str, Any], said: str
) -> None:
    run = launched(child, user, now)

    assert prepare(run_id=run.pk, now=now, upstream={"a b": output}) == State.FAILED

    run.refresh_from_db()
    assert run.reason == "param_error"
    assert said in str(run.detail["fields"]["parameters.pages"])


def test_an_output_of_64_kib_with_quotes_and_line_breaks_arrives_whole(
    child: Job, upstream: Job, user: User, now: datetime
) -> None:
    text = "'\"\n; rm -rf /".ljust(65536, "x")
    child = update_job(
        job=child,
        by=user,
        now=now,
        parameters={"note": f"{{{{ upstream.{upstream.pk}.text }}}}"},
    )
    run = launched(child, user, now)

    prepare(run_id=run.pk, now=now, upstream={str(upstream.pk): {"text": text}})

    run.refresh_from_db()
    assert run.spec["parameters"]["note"] == text


def test_a_run_by_itself_takes_the_output_of_the_newest_success(
    child: Job, upstream: Job, user: User, now: datetime
) -> None:
    for state, count in ((State.SUCCEEDED, 5), (State.SUCCEEDED, 6), (State.FAILED, 7)):
        RunFactory(job=upstream, state=state, output={"count": count})
    run = launched(child, user, now)

    prepare(run_id=run.pk, now=now)

    run.refresh_from_db()
    assert run.spec["parameters"]["pages"] == 6


def test_without_any_output_the_run_fails_and_says_what_is_missing(
    child: Job, upstream: Job, user: User, now: datetime
) -> None:
    run = launched(child, user, now)

    prepare(run_id=run.pk, now=now)

    run.refresh_from_db()
    assert run.state == State.FAILED
    assert "“a b” has put out no “count”" in reasons.sentence(run)


def test_a_run_that_was_never_filled_in_is_filled_in_when_it_is_run_again(
    child: Job, upstream: Job, user: User, now: datetime
) -> None:
    run = launched(child, user, now)
    prepare(run_id=run.pk, now=now)
    RunFactory(job=upstream, state=State.SUCCEEDED, output={"count": 9})
    run.refresh_from_db()

    again = rerun(run=run, by=person(user), now=now, trigger=Trigger.MANUAL)
    prepare(run_id=again.pk, now=now)

    again.refresh_from_db()
    assert again.state == State.QUEUED
    assert again.spec["parameters"]["pages"] == 9


def test_a_stopped_run_is_not_prepared(child: Job, user: User, now: datetime) -> None:
    run = launched(child, user, now)
    request_stop(run=run, by=person(user), now=now)
    assert prepare(run_id=run.pk, now=now, upstream={"a b": {"count": 1}}) == ""
    run.refresh_from_db()
    assert run.state == State.CANCELED


def test_two_who_prepare_one_run_do_it_once(child: Job, user: User, now: datetime) -> None:
    run = launched(child, user, now)
    Run.objects.filter(pk=run.pk).update(lease_until=now + timedelta(hours=1))
    assert prepare(run_id=run.pk, now=now, upstream={"a b": {"count": 1}}) == ""
    run.refresh_from_db()
    assert run.state == State.WAITING


def test_a_lost_hint_is_made_good_but_not_out_of_turn(
    child: Job, user: User, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(preparing, "request_preparation", asked.append)
    alone = launched(child, user, now)
    batch = Batch.objects.create(project=child.project, job=child, kind="graph", trigger="api", created_at=now)
    in_batch = RunFactory(job=child, state=State.WAITING, spec={**alone.spec}, batch=batch, batch_key="x")
    held = launched(child, user, now, trigger=Trigger.API)
    Run.objects.filter(pk=held.pk).update(lease_until=now + timedelta(hours=1))

    assert prepare_waiting(now=now) == len(asked)
    assert asked == [alone.pk]

    note_turn(run=in_batch, now=now)
    asked.clear()
    prepare_waiting(now=now)
    assert asked == [alone.pk, in_batch.pk]


# -- calls ------------------------------------------------------------------------------------------------------------


class Shop(http.server.BaseHTTPRequestHandler):
    """Answers what its server says."""

    def do_GET(self) -> None:
        server: Any = self.server
        length = int(self.headers.get("Content-Length") or 0)
        server.asked.append((self.command, self.path, self.headers.get("Authorization"), self.rfile.read(length)))
        status, content = server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 (the server's name)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def shop(now: datetime) -> Iterator[Any]:
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.daemon_threads = True
    server.asked, server.answer = [], (200, b'{"count": 3, "rows": [4]}')
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    server.host = f"localhost:{server.server_address[1]}"
    CallHost.objects.create(host=server.host, created_at=now)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def caller(spider: Spider, user: User, now: datetime, shop: Any) -> Job:
    call = {
        "url": f"http://{shop.host}/days/{{{{ yesterday }}}}?of={{{{ job.name }}}}",
        "method": "POST",
        "secret_headers": {"Authorization": "token"},
        "body": {"day": "{{ today }}"},
    }
    return create_job(
        by=user,
        now=now,
        spider=spider,
        name="a&b=c/d",
        parameters={"pages": "{{ call.shop.count }}", "rows": "{{ call.shop.rows }}"},
        secrets={"token": "hush"},
        calls={"shop": call},
    )


def nobody_minds(_address: Any, _networks: Any) -> bool:
    return True


def test_a_call_is_made_once_just_before_the_run(caller: Job, user: User, now: datetime, shop: Any) -> None:
    run = launched(caller, user, now)
    assert (run.state, shop.asked) == (State.WAITING, [])

    assert prepare(run_id=run.pk, now=now, guard=nobody_minds) == State.QUEUED

    run.refresh_from_db()
    assert shop.asked == [("POST", "/days/2026-11-29?of=a%26b%3Dc%2Fd", "hush", b'{"day":"2026-11-30"}')]
    assert (run.spec["parameters"]["pages"], run.spec["parameters"]["rows"]) == (3, [4])
    assert "hush" not in str(run.spec)
    assert "calls" not in run.spec


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, b""), "status 500"),
        ((302, b""), "redirect"),
        ((200, b"<html>"), "not JSON"),
        ((200, b"[" * 100 + b"]" * 100), "too deeply"),
        ((200, b"{}"), "no “count”"),
        ((200, b'{"count": "x", "rows": []}'), "whole number"),
        ((200, b'{"count": null, "rows": []}'), "whole number"),
    ],
)
def test_a_call_without_a_good_answer_fails_the_run(
    caller: Job, user: User, now: datetime, shop: Any, answer: tuple[int, bytes], said: str
) -> None:
    run = launched(caller, user, now)
    shop.answer = answer

    assert prepare(run_id=run.pk, now=now, guard=nobody_minds) == State.FAILED

    run.refresh_from_db()
    assert run.reason == "param_error"
    assert said in str(run.detail)


def test_a_host_that_is_listed_no_more_or_leads_inside_is_not_called(
    caller: Job, user: User, now: datetime, shop: Any
) -> None:
    assert prepare(run_id=launched(caller, user, now).pk, now=now) == State.FAILED
    unlisted = launched(caller, user, now)
    CallHost.objects.all().delete()
    assert prepare(run_id=unlisted.pk, now=now, guard=nobody_minds) == State.FAILED

    assert shop.asked == []


def test_the_tab_of_a_run_shows_what_was_typed_beside_what_it_became(
    client: Client, spider: Spider, user: User, now: datetime
) -> None:
    run = launched(made(spider, user, now, since="{{ yesterday }}"), user, now)
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")

    page = client.get(f"/runs/{run.pk}/?tab=parameters").content.decode()

    assert "<bdi>{{ yesterday }}</bdi></code> → <bdi>2026-11-29</bdi>" in page
    assert "--day=2026-11-30" in page
    assert "--day={{ today }}" in page


def test_a_run_that_was_never_filled_in_may_be_given_other_values(
    client: Client, child: Job, upstream: Job, user: User, now: datetime
) -> None:
    run = launched(child, user, now)
    prepare(run_id=run.pk, now=now)
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    page = f"/runs/{run.pk}/rerun/"
    template = child.parameters["pages"]

    assert f'value="{escape(template)}"' in client.get(page).content.decode()
    kept = client.post(page, {"p.pages": template, "p.note": "{{ today }}", "p__mode": "form", "with_changes": "1"})
    given = client.post(page, {"p.pages": "4", "p.note": "", "p__mode": "form", "with_changes": "1"})

    assert (kept.status_code, given.status_code) == (302, 302)
    waits, goes = Run.objects.filter(pk__gt=run.pk).order_by("pk")
    RunFactory(job=upstream, state=State.SUCCEEDED, output={"count": 9})
    assert [prepare(run_id=each.pk, now=now) for each in (waits, goes)] == [State.QUEUED, State.QUEUED]
    waits.refresh_from_db()
    goes.refresh_from_db()
    assert waits.spec["parameters"] == {"pages": 9, "note": "{{ today }}", "deep": False}
    assert goes.spec["parameters"] == {"pages": 4, "deep": False}


@pytest.mark.django_db(transaction=True)
def test_of_four_who_prepare_one_run_at_once_one_makes_the_call(
    caller: Job, user: User, now: datetime, shop: Any
) -> None:
    run = launched(caller, user, now)
    together = threading.Barrier(4)

    def prepared(_number: int) -> str:
        together.wait()
        try:
            return prepare(run_id=run.pk, now=now, guard=nobody_minds)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        states = list(pool.map(prepared, range(4)))

    assert sorted(states) == ["", "", "", State.QUEUED]
    assert len(shop.asked) == 1
    assert run.events.filter(to_state=State.QUEUED).count() == 1
