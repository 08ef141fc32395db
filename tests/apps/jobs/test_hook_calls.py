"""What a webhook takes, refuses and starts, asked for at its door."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from apps.accounts.models import User
from apps.core import brakes
from apps.core.actors import person
from apps.jobs.models import Hook, Job
from apps.jobs.services import hooks, update_job
from apps.jobs.services.graph import set_dependencies
from apps.jobs.services.hooks import calling
from apps.runs.models import Batch, Run
from apps.runs.states import State, Trigger
from apps.spiders.models import Secret
from apps.spiders.secrets import reveal
from tests.factories import AdminFactory, JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pages": {"type": "integer", "minimum": 1},
        "site": {"type": "string"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "shop": {"type": "object", "properties": {"floor": {"type": "integer"}}},
        "racks": {
            "type": "array",
            "items": {"type": "object", "properties": {"open": {"type": "boolean", "default": True}}},
        },
        "key": {"type": "string", "writeOnly": True, "minLength": 4},
    },
}


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    cache.clear()


@pytest.fixture
def job() -> Job:
    return JobFactory(
        spider=SpiderFactory(version__parameter_schema=SCHEMA), parameters={"pages": 3, "site": "a"}, overlap="allow"
    )


@pytest.fixture
def by() -> User:
    return AdminFactory(username="ann")


def made(job: Job, by: User, now: Any, **more: Any) -> tuple[Hook, str, str]:
    return hooks.create_hook(job=job, by=person(by), now=now, **{"name": "deploy", **more})


def post(token: str, body: Any = None, **headers: str) -> Any:
    sent = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    spelt = {name.replace("_", "-"): value for name, value in headers.items()}
    return Client().generic("POST", f"/hooks/{token}/", sent, "application/json", headers=spelt)


def signed(key: str, body: bytes) -> str:
    return "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def run_of(answer: Any) -> Run:
    assert answer.status_code == 202, answer.content
    return Run.objects.get(pk=answer.json()["run"])


# -- what it starts -----------------------------------------------------------------------------------------------


def test_a_call_runs_the_job_with_what_the_body_says_over_what_the_job_says(job, by, now):
    hook, token, _key = made(job, by, now)
    answer = post(token, {"pages": 7, "deep": True, "sender": {"id": 5}})
    run = run_of(answer)
    assert answer.json() == {"run": run.pk, "state": "queued", "new": True, "ignored": ["sender"]}
    assert run.spec["parameters"] == {"pages": 7, "site": "a", "deep": True}
    assert (run.trigger, run.job_id, run.requested_by) == (Trigger.WEBHOOK, job.pk, None)
    assert run.events.get().actor == "hook: deploy"
    hook.refresh_from_db()
    assert hook.last_used_at is not None


@pytest.mark.parametrize("body", [b"", b"  \n", b"{}"])
def test_a_call_without_anything_in_it_runs_the_job_as_it_is(job, by, now, body):
    assert run_of(post(made(job, by, now)[1], body)).spec["parameters"] == {"pages": 3, "site": "a"}


def test_the_address_works_without_its_slash_too(job, by, now):
    assert Client().post(f"/hooks/{made(job, by, now)[1]}", b"{}", "application/json").status_code == 202


def test_texts_become_the_numbers_that_the_schema_asks_for(job, by, now):
    run = run_of(post(made(job, by, now)[1], {"pages": "12", "deep": "true", "site": "12", "shop": {"floor": "2"}}))
    assert run.spec["parameters"] == {"pages": 12, "deep": True, "site": "12", "shop": {"floor": 2}}


def test_a_mapping_takes_values_from_deep_inside_and_nothing_else(job, by, now):
    mapping = {"pages": "event.count", "site": "event.hosts.1", "tags": "event.tags", "deep": "event.nowhere.at"}
    token = made(job, by, now, mapping=mapping)[1]
    body = {"event": {"count": "4", "hosts": ["x", "y"], "tags": ["a"]}, "pages": 99, "deep": True}
    answer = post(token, body)
    assert answer.json()["missing"] == ["deep"]
    assert run_of(answer).spec["parameters"] == {"pages": 4, "site": "y", "tags": ["a"]}


def test_a_parameter_that_the_spider_has_lost_is_named_and_left_out(job, by, now):
    token = made(job, by, now, mapping={"pages": "n", "site": "s"})[1]
    job.spider.current_version.parameter_schema = {"type": "object", "properties": {"pages": {"type": "integer"}}}
    job.spider.current_version.save()
    answer = post(token, {"n": 1, "s": "x"})
    assert answer.json()["ignored"] == ["site"]
    assert run_of(answer).spec["parameters"] == {"pages": 1}


def test_what_looks_like_a_template_is_a_text(job, by, now):
    run = run_of(post(made(job, by, now)[1], {"site": "{{ today }}", "tags": ["{{ params.key }}"]}))
    assert run.spec["parameters"]["site"] == "{{ today }}"
    assert run.spec["parameters"]["tags"] == ["{{ params.key }}"]


def test_it_stays_a_text_where_the_rest_of_the_order_waits_for_an_answer(job, by, now):
    call = {"method": "GET", "url": "https://api.example.com/", "headers": {}}
    Job.objects.filter(pk=job.pk).update(calls={"shop": call}, env={"STOCK": "{{ call.shop.stock }}"})
    token = made(job, by, now)[1]
    run = run_of(post(token, {"site": "{{ call.shop.stock }}"}, Idempotency_Key="1"))
    assert run.state == State.WAITING
    assert list(run.spec["templates"]) == ["env"]
    assert run_of(post(token, {"site": "{{ call.shop.stock }}"}, Idempotency_Key="1")) == run


def test_a_secret_parameter_is_kept_as_a_secret(job, by, now):
    run = run_of(post(made(job, by, now)[1], {"key": "correct horse"}))
    assert "key" not in run.spec["parameters"]
    assert reveal(run.spec["secrets"]) == {"key": "correct horse"}
    assert b"correct horse" not in bytes(Secret.objects.get().ciphertext)


@pytest.mark.parametrize("value", [None, 12345, ["x"], {"a": 1}, True, "abc"])
def test_a_wrong_secret_is_refused_without_being_repeated(job, by, now, value):
    answer = post(made(job, by, now)[1], {"key": value})
    assert answer.status_code == 422
    assert list(answer.json()["fields"]) == ["key"]
    assert json.dumps(value) not in answer.content.decode()
    assert not Run.objects.exists()
    assert not Secret.objects.exists()


def test_a_job_that_skips_says_so(job, by, now):
    Job.objects.update(overlap="skip")
    token = made(job, by, now)[1]
    assert post(token).json()["state"] == "queued"
    assert post(token).json()["state"] == "skipped"


def test_a_delivery_starts_the_jobs_that_follow_once(job, by, now):
    token = made(job, by, now)[1]
    set_dependencies(job=JobFactory(spider=job.spider), upstreams=[(job.pk, "success")], join="all", by=by, now=now)
    first, again = (run_of(post(token, {"pages": 2}, Idempotency_Key="1")) for _ in range(2))
    assert first == again
    assert first.batch is not None
    assert post(token, {"pages": 3}, Idempotency_Key="1").status_code == 409
    assert (Batch.objects.count(), Run.objects.count()) == (1, 2)


# -- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"pages": "many"}, "pages"),
        ({"pages": 1.5}, "pages"),
        ({"pages": True}, "pages"),
        ({"pages": "0"}, "pages"),
        ({"site": 12}, "site"),
        ({"site": None}, "site"),
        ({"tags": "a"}, "tags"),
        ({"tags": ["a", 1]}, "tags.1"),
        ({"shop": {"floor": "x"}}, "shop.floor"),
        ({"shop": {"other": 1}}, "shop.other"),
    ],
)
def test_a_wrong_type_is_refused_at_its_field(job, by, now, body, field):
    answer = post(made(job, by, now)[1], body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"
    assert list(answer.json()["fields"]) == [field]
    assert not Run.objects.exists()


def test_with_a_mapping_the_fault_is_named_by_its_place_in_the_body(job, by, now):
    token = made(job, by, now, mapping={"shop": "event.shop", "pages": "event.pages"})[1]
    answer = post(token, {"event": {"shop": {"floor": "x"}, "pages": []}})
    assert set(answer.json()["fields"]) == {"event.shop.floor", "event.pages"}


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"12", b'"x"', b"null", b"payload=%7B%7D", b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"a": NaN}',
        b'{"a": 1e999}', b'{"a": 1' + b"0" * 5000 + b"}", b'{"a": "\\u0000"}', b'{"\\u0000": 1}',
        b'{"a": "\\ud800"}', b'{"\\ud800": 1}', b'{"a": 1, "a": 2}', b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_body_that_is_no_plain_json_object_is_refused_in_words(job, by, now, body):
    answer = post(made(job, by, now)[1], body)
    assert answer.status_code == 422, answer.content
    assert answer.json()["code"] == "invalid"
    assert answer.json()["detail"].endswith(".")
    assert not Run.objects.exists()


def test_a_body_may_be_256_kib_and_no_more(job, by, now):
    token = made(job, by, now)[1]
    most = json.dumps({"x": "y" * (256 * 1024 - 9)}).encode()
    assert len(most) == 256 * 1024
    assert post(token, most).status_code == 202
    answer = post(token, most + b" ")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_ignored_names_are_answered_in_short(job, by, now):
    answer = post(made(job, by, now)[1], {f"k{n}" + "x" * 500: 1 for n in range(400)})
    assert answer.status_code == 202
    assert len(answer.content) < 4000


def test_other_methods_are_refused_for_whatever_address(job, by, now):
    for token in (made(job, by, now)[1], "x" * 43):
        for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer = Client().generic(method, f"/hooks/{token}/")
            assert answer.status_code == 405, method


def test_a_session_is_neither_needed_nor_made(job, by, now):
    client = Client(enforce_csrf_checks=True)
    answer = client.post(f"/hooks/{made(job, by, now)[1]}/", b"{}", "application/json")
    assert answer.status_code == 202
    assert not answer.cookies


# -- who may call -------------------------------------------------------------------------------------------------


def test_unknown_revoked_renewed_and_wrongly_signed_look_the_same(job, by, now):
    hook, revoked, _ = made(job, by, now, name="a")
    hooks.revoke_hook(hook=hook, by=person(by), now=now)
    hook, renewed, _ = made(job, by, now, name="b")
    hooks.renew_token(hook=hook, by=person(by), now=now)
    _, signing, key = made(job, by, now, name="c", kind="hmac")
    answers = [
        post("x" * 43),
        post("x"),
        post("%00"),
        post("%E4%BD%A0"),
        post("y" * 5000),
        post(revoked),
        post(renewed),
        post(signing),
        post(signing, b"{}", X_Signature_256="sha256=" + "0" * 64),
        post(signing, b"{}", X_Signature_256=signed(key, b"{ }")),
        post(signing, b"{}", X_Signature_256=signed(key + "0", b"{}")),
        post(signing, b"{}", X_Signature_256=signed(key, b"{}").removeprefix("sha256=")),
        post(signing, b"{}", X_Signature_256="sha1=" + hmac.new(key.encode(), b"{}", hashlib.sha1).hexdigest()),
        post(signing, b"{", X_Signature_256="\x00é"),
    ]
    assert {(a.status_code, a.content, tuple(sorted(a.headers.items()))) for a in answers} == {
        (404, answers[0].content, tuple(sorted(answers[0].headers.items())))
    }
    assert answers[0].json()["code"] == "not_found"
    assert not Run.objects.exists()


@pytest.mark.parametrize("header", ["X-Signature-256", "X-Hub-Signature-256"])
def test_a_right_signature_opens_under_either_name(job, by, now, header):
    _hook, token, key = made(job, by, now, kind="hmac")
    body = b'{"pages":  5}'
    assert run_of(post(token, body, **{header: signed(key, body)})).spec["parameters"]["pages"] == 5
    assert post(token, body, **{header: signed(key, body).upper().replace("SHA", "sha")}).status_code == 202


def test_a_key_that_cannot_be_read_any_more_opens_nothing(job, by, now, settings):
    _hook, token, key = made(job, by, now, kind="hmac")
    settings.ENCRYPTION_KEYS = ["A" * 43 + "="]
    assert post(token, b"{}", X_Signature_256=signed(key, b"{}")).status_code == 404


# -- twice --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-GitHub-Delivery"])
def test_a_delivery_that_comes_again_gives_the_same_run(job, by, now, header):
    token = made(job, by, now)[1]
    first = post(token, {"pages": 1}, **{header: "d-1"})
    again = post(token, {"pages": 1}, **{header: "d-1"})
    assert (first.json()["new"], again.json()["new"]) == (True, False)
    assert run_of(first) == run_of(again)
    assert run_of(post(token, {"pages": 1}, **{header: "d-2"})) != run_of(first)


def test_without_a_name_for_the_delivery_each_call_is_a_run(job, by, now):
    token = made(job, by, now)[1]
    assert run_of(post(token)) != run_of(post(token))


def test_deliveries_of_two_hooks_do_not_meet(job, by, now):
    one, other = made(job, by, now, name="one")[1], made(job, by, now, name="other")[1]
    assert run_of(post(one, Idempotency_Key="1")) != run_of(post(other, Idempotency_Key="1"))


def test_a_delivery_with_a_secret_comes_again_too(job, by, now):
    token = made(job, by, now)[1]
    answers = [post(token, {"key": "correct horse"}, Idempotency_Key="1") for _ in range(2)]
    assert run_of(answers[0]) == run_of(answers[1])
    assert Secret.objects.count() == 1
    assert post(token, {"key": "wrong horse"}, Idempotency_Key="1").status_code == 409


def test_a_delivery_with_another_body_is_a_conflict(job, by, now):
    token = made(job, by, now)[1]
    post(token, {"pages": 1}, Idempotency_Key="1")
    answer = post(token, {"pages": 2}, Idempotency_Key="1")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_used")
    assert Run.objects.count() == 1


def test_a_delivery_comes_again_though_the_job_was_changed_between(job, by, now):
    token = made(job, by, now)[1]
    first = post(token, {"pages": 1, "key": "correct horse", "racks": [{}]}, Idempotency_Key="1")
    update_job(job=job, by=by, now=now, priority=2, parameters={"site": "b"})
    again = post(token, {"pages": 1, "key": "correct horse", "racks": [{}]}, Idempotency_Key="1")
    assert run_of(first) == run_of(again)
    assert Secret.objects.count() == 1


@pytest.mark.parametrize("name", ["", "x" * 151, "a\x7fb", "a\tb"])
def test_a_delivery_has_a_plain_name(job, by, now, name):
    answer = post(made(job, by, now)[1], Idempotency_Key=name)
    assert answer.status_code == 422
    assert list(answer.json()["fields"]) == ["Idempotency-Key"]


# -- how often ----------------------------------------------------------------------------------------------------


def test_a_hook_is_braked_by_its_own_count(job, by, now, monkeypatch):
    monkeypatch.setattr(brakes, "WINDOW_SECONDS", 3600)
    one, other = made(job, by, now, name="one", per_minute=2)[1], made(job, by, now, name="other")[1]
    assert [post(one).status_code for _ in range(3)] == [202, 202, 429]
    answer = post(one)
    assert answer.json()["code"] == "throttled"
    assert 0 < int(answer["Retry-After"]) <= 3601
    assert post(other).status_code == 202
    assert Run.objects.count() == 3


def test_wrong_signatures_do_not_use_up_the_calls_of_the_right_ones(job, by, now, monkeypatch):
    monkeypatch.setattr(brakes, "WINDOW_SECONDS", 3600)
    _hook, token, key = made(job, by, now, kind="hmac", per_minute=1)
    assert [post(token).status_code for _ in range(3)] == [404, 404, 404]
    assert post(token, b"{}", X_Signature_256=signed(key, b"{}")).status_code == 202


def test_who_tries_addresses_is_slowed_down_and_nobody_else(job, by, now, monkeypatch):
    monkeypatch.setattr(brakes, "WINDOW_SECONDS", 3600)
    monkeypatch.setattr(calling, "MISSES_A_MINUTE", 2)
    token = made(job, by, now)[1]
    assert [post("x" * 43).status_code for _ in range(3)] == [404, 404, 429]
    assert "Retry-After" in post("x" * 43).headers
    assert post(token).status_code == 202
    elsewhere = Client(REMOTE_ADDR="192.0.2.7").post("/hooks/x/", b"{}", "application/json")
    assert elsewhere.status_code == 404


def test_without_the_cache_a_call_is_taken_uncounted(job, by, now, monkeypatch):
    def broken(*_args: object, **_kwargs: object) -> None:
        raise RedisConnectionError

    token = made(job, by, now, per_minute=1)[1]
    monkeypatch.setattr(brakes.cache, "add", broken)
    assert [post(token).status_code for _ in range(2)] == [202, 202]
    assert post("x").status_code == 404


def test_a_busy_hook_notes_its_use_once_a_minute(job, by, now):
    hook, token, _key = made(job, by, now)
    calls = {"token": token, "body": b"", "headers": {}}
    hooks.call_hook(**calls, now=now)
    hooks.call_hook(**calls, now=now + timedelta(seconds=59))
    hook.refresh_from_db()
    assert hook.last_used_at == now
    hooks.call_hook(**calls, now=now + timedelta(seconds=61))
    hook.refresh_from_db()
    assert hook.last_used_at == now + timedelta(seconds=61)


def test_a_spider_without_code_is_a_conflict_in_words(job, by, now):
    token = made(job, by, now)[1]
    job.spider.current_version = None
    job.spider.save()
    answer = post(token)
    assert (answer.status_code, answer.json()["code"]) == (409, "no_version")


def test_with_its_job_a_hook_is_gone(job, by, now):
    token = made(job, by, now)[1]
    Run.objects.filter(job=job).update(state=State.SUCCEEDED)
    job.delete()
    assert post(token).status_code == 404
