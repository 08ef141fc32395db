"""Making, changing and running jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.actors import person
from apps.core.errors import Invalid, NotFound
from apps.jobs.models import Job
from apps.jobs.services import JobNameTaken, NoVersion, create_job, delete_job, run_job, update_job
from apps.runs.models import Run
from apps.spiders.models import Secret, Spider
from apps.spiders.secrets import reveal
from tests.factories import BareSpiderFactory, JobFactory, SpiderFactory, UserFactory, VersionFactory

pytestmark = pytest.mark.django_db

SCHEMA = {
    "type": "object",
    "required": ["token"],
    "properties": {
        "pages": {"type": "integer", "minimum": 1, "default": 3},
        "words": {"type": "array", "items": {"type": "string"}},
        "token": {"type": "string", "writeOnly": True, "minLength": 4},
    },
}


@pytest.fixture
def spider() -> Spider:
    return SpiderFactory(version__parameter_schema=SCHEMA, version__default_limits={"memory_mb": 256, "pids": 9})


@pytest.fixture
def user() -> User:
    return UserFactory()


@pytest.fixture
def job(spider: Spider, user: User, now: datetime) -> Job:
    return create_job(by=user, now=now, spider=spider, name="daily", parameters={}, secrets={"token": "first"})


def refused(excinfo: pytest.ExceptionInfo[Invalid]) -> set[str]:
    return set(excinfo.value.fields)


# -- making -------------------------------------------------------------------------------------------------------


def test_a_new_job_has_the_limits_of_the_version_before_the_panels(job: Job) -> None:
    job.refresh_from_db()

    assert (job.memory_mb, job.timeout_seconds, job.priority) == (256, 3600, 5)
    assert job.project == job.spider.project


def test_secrets_are_encrypted_wherever_they_came_from(spider: Spider, user: User, now: datetime) -> None:
    job = create_job(by=user, now=now, spider=spider, name="a", parameters={"token": "in the parameters", "pages": 2})

    assert job.parameters == {"pages": 2}
    assert reveal(job.secrets) == {"token": "in the parameters"}
    assert b"parameters" not in bytes(Secret.objects.get().ciphertext)


def test_all_faults_are_told_at_once_and_nothing_is_kept(spider: Spider, user: User, now: datetime) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_job(
            by=user,
            now=now,
            spider=spider,
            name=" ",
            parameters={"pages": 0, "odd": 1, "words": ["a", 5]},
            secrets={"token": "abc"},
            memory_mb=1,
            cpus=float("nan"),
            priority=10,
            env={"CLAW_RUN": "x", "lower": "y"},
        )

    assert refused(excinfo) == {
        "name", "parameters.pages", "parameters.odd", "parameters.words.1", "parameters.token", "memory_mb", "cpus",
        "priority", "env",
    }  # fmt: skip
    assert not Job.objects.exists()
    assert not Secret.objects.exists()


@pytest.mark.parametrize(
    "parameters",
    [
        {"words": ["a\0b"]},
        {"words": ["\ud800"]},
        {"pages": 2**70},
        {"pages": float("nan")},
        {"pages": True},
        {"words": ["x" * 10_000_000]},
        {"\0": 1},
        [],
        None,
        "text",
    ],
    ids=range(10),
)
def test_hostile_parameters_are_refused(spider: Spider, user: User, now: datetime, parameters: Any) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_job(by=user, now=now, spider=spider, name="a", parameters=parameters, secrets={"token": "long enough"})

    assert all(path.startswith("parameters") for path in refused(excinfo))


@pytest.mark.parametrize("value", ["", "abc", "a\0bcd", "\ud800abc", 5, ["x"], "x" * 70_000])
def test_a_secret_must_fit_too(spider: Spider, user: User, now: datetime, value: Any) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_job(by=user, now=now, spider=spider, name="a", parameters={}, secrets={"token": value})

    assert refused(excinfo) == {"parameters.token"}


def test_a_secret_of_a_parameter_that_is_none_is_refused(spider: Spider, user: User, now: datetime) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_job(by=user, now=now, spider=spider, name="a", parameters={}, secrets={"token": "good", "pages": "x"})

    assert refused(excinfo) == {"parameters.pages"}


@pytest.mark.parametrize(
    "env",
    [
        {"1A": "x"},
        {"A-B": "x"},
        {"": "x"},
        {"A": 1},
        {"A": "x\0"},
        {"A": "x" * 9000},
        {"CLAW_X": ""},
        {"PYTHONPATH": "/"},
        {"A\n": "x"},
        {"A": "\ud800"},
        {f"A{n}": "" for n in range(101)},
        {f"A{n}": "x" * 8000 for n in range(20)},
        ["A=1"],
    ],
    ids=range(13),
)
def test_bad_environment_variables_are_refused(spider: Spider, user: User, now: datetime, env: Any) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_job(by=user, now=now, spider=spider, name="a", parameters={"token": "good"}, env=env)

    assert refused(excinfo) == {"env"}


def test_names_are_unique_in_a_project_only(job: Job, user: User, now: datetime) -> None:
    with pytest.raises(JobNameTaken) as excinfo:
        create_job(by=user, now=now, spider=job.spider, name=" daily ", parameters={"token": "good"})
    assert set(excinfo.value.fields) == {"name"}

    create_job(by=user, now=now, spider=SpiderFactory(), name="daily", parameters={})


def test_a_spider_without_version_has_no_jobs(user: User, now: datetime) -> None:
    with pytest.raises(NoVersion):
        create_job(by=user, now=now, spider=BareSpiderFactory(), name="a", parameters={})


def test_a_version_of_another_spider_is_refused(spider: Spider, user: User, now: datetime) -> None:
    with pytest.raises(Invalid) as excinfo:
        create_job(by=user, now=now, spider=spider, name="a", parameters={}, version=VersionFactory())

    assert refused(excinfo) == {"version"}


# -- changing -----------------------------------------------------------------------------------------------------


def test_what_is_not_changed_stays(job: Job, user: User, now: datetime) -> None:
    update_job(job=job, by=user, now=now, name="weekly")
    job.refresh_from_db()

    assert job.name == "weekly"
    assert job.memory_mb == 256
    assert reveal(job.secrets) == {"token": "first"}


def test_a_secret_that_is_replaced_is_forgotten(job: Job, user: User, now: datetime) -> None:
    update_job(job=job, by=user, now=now, secrets={"token": "second"})
    job.refresh_from_db()

    assert reveal(job.secrets) == {"token": "second"}
    assert Secret.objects.count() == 1


def test_a_secret_that_a_run_needs_is_kept(job: Job, user: User, now: datetime) -> None:
    run, _ = run_job(job=job, by=person(user), now=now, trigger="manual")
    update_job(job=job, by=user, now=now, secrets={"token": "second"})

    assert reveal(run.spec["secrets"]) == {"token": "first"}
    delete_job(job=job, by=user, now=now)
    assert reveal(run.spec["secrets"]) == {"token": "first"}
    assert Secret.objects.count() == 1


def test_a_needed_secret_cannot_be_dropped(job: Job, user: User, now: datetime) -> None:
    with pytest.raises(Invalid) as excinfo:
        update_job(job=job, by=user, now=now, secrets={"token": None})

    assert refused(excinfo) == {"parameters.token"}


def test_a_refused_change_changes_nothing(job: Job, user: User, now: datetime) -> None:
    with pytest.raises(Invalid):
        update_job(job=job, by=user, now=now, name="other", parameters={"pages": 0}, secrets={"token": "second"})
    job.refresh_from_db()

    assert job.name == "daily"
    assert reveal(job.secrets) == {"token": "first"}


def test_a_job_whose_spider_has_moved_on_can_still_be_renamed(job: Job, user: User, now: datetime) -> None:
    stricter = {**SCHEMA, "required": ["token", "words"]}
    job.spider.current_version = VersionFactory(spider=job.spider, parameter_schema=stricter)
    job.spider.save()

    update_job(job=job, by=user, now=now, name="renamed")
    with pytest.raises(Invalid):
        update_job(job=job, by=user, now=now, parameters={})


def test_a_deleted_job_cannot_be_changed_or_run(job: Job, user: User, now: datetime) -> None:
    gone = Job.objects.get(pk=job.pk)
    delete_job(job=job, by=user, now=now)

    for act in (
        lambda: update_job(job=gone, by=user, now=now, name="x"),
        lambda: delete_job(job=gone, by=user, now=now),
        lambda: run_job(job=gone, by=person(user), now=now, trigger="manual"),
    ):
        with pytest.raises(NotFound):
            act()


# -- running ------------------------------------------------------------------------------------------------------


def test_a_run_is_a_frozen_copy_with_defaults_filled_in(job: Job, user: User, now: datetime) -> None:
    update_job(job=job, by=user, now=now, env={"PROXY": "x"}, memory_mb=300)
    run, new = run_job(job=job, by=person(user), now=now, trigger="manual", parameters={"words": ["a"]})

    assert new
    assert run.spec["parameters"] == {"pages": 3, "words": ["a"]}
    assert run.spec["env"] == {"PROXY": "x"}
    assert run.spec["limits"]["memory_mb"] == 300
    assert list(run.spec["secrets"]) == ["token"]
    assert "first" not in str(run.spec)
    job.refresh_from_db()
    assert job.parameters == {}


def test_parameters_for_one_run_are_checked_like_the_jobs(job: Job, user: User, now: datetime) -> None:
    with pytest.raises(Invalid) as excinfo:
        run_job(job=job, by=person(user), now=now, trigger="api", parameters={"pages": "many", "odd": 1})

    assert refused(excinfo) == {"parameters.pages", "parameters.odd"}
    assert not Run.objects.exists()


def test_a_secret_for_one_run_leaves_the_jobs_alone(job: Job, user: User, now: datetime) -> None:
    run, _ = run_job(job=job, by=person(user), now=now, trigger="api", parameters={"token": "only now"})
    job.refresh_from_db()

    assert reveal(run.spec["secrets"]) == {"token": "only now"}
    assert reveal(job.secrets) == {"token": "first"}


def test_a_repeated_request_with_a_key_is_the_same_run_even_with_a_secret(job: Job, user: User, now: datetime) -> None:
    asked = [
        run_job(job=job, by=person(user), now=now, trigger="api", secrets={"token": "only now"}, idempotency_key="k")
        for _ in range(2)
    ]

    assert asked[0][0] == asked[1][0]
    assert [new for _run, new in asked] == [True, False]
    assert Secret.objects.count() == 2


def test_parameters_the_spider_does_not_know_any_more_stay_out_of_the_run(job: Job, user: User, now: datetime) -> None:
    Job.objects.filter(pk=job.pk).update(parameters={"gone": 1, "pages": 2})
    run, _ = run_job(job=job, by=person(user), now=now, trigger="manual")

    assert run.spec["parameters"] == {"pages": 2}


def test_a_pinned_version_is_used_although_there_is_a_newer_one(spider: Spider, user: User, now: datetime) -> None:
    pinned = spider.current_version
    job = create_job(by=user, now=now, spider=spider, name="a", parameters={"token": "good"}, version=pinned)
    spider.current_version = VersionFactory(spider=spider)
    spider.save()
    run, _ = run_job(job=job, by=person(user), now=now, trigger="manual")

    assert run.version == pinned


def test_an_unknown_field_is_a_programming_error(now: datetime) -> None:
    with pytest.raises(TypeError):
        update_job(job=JobFactory(), by=UserFactory(), now=now, spider=None)


def test_complete_parameters_take_the_place_of_the_jobs(job: Job, user: User, now: datetime) -> None:
    update_job(job=job, by=user, now=now, parameters={"words": ["kept"]})

    run, _ = run_job(job=job, by=person(user), now=now, trigger="manual", parameters={"pages": 2}, complete=True)

    assert run.spec["parameters"] == {"pages": 2}
