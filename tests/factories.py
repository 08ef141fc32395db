"""Objects for tests, with as little said as possible."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from typing import Any

import factory
from django.contrib.auth.models import Group

from apps.accounts.models import User
from apps.jobs.models import Hook, Job
from apps.runs.models import Attempt, Node, Pool, Run
from apps.runs.states import State, Trigger
from apps.spiders.models import CodeArchive, Project, Spider, Version

MIB = 1024 * 1024


def _now(*_: object) -> datetime:
    return datetime.now(UTC)


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"user{n}")
    is_active = True

    @factory.post_generation
    def password(self: User, create: bool, extracted: str | None, **_: Any) -> None:
        """Hashing is slow: only who signs in gets a password."""
        if extracted:
            self.set_password(extracted)
            if create:
                self.save(update_fields=["password"])


class AdminFactory(UserFactory):
    username = factory.Sequence(lambda n: f"admin{n}")
    is_superuser = True
    is_staff = True


class GroupFactory(factory.django.DjangoModelFactory[Group]):
    class Meta:
        model = Group

    name = factory.Sequence(lambda n: f"group{n}")


class ProjectFactory(factory.django.DjangoModelFactory[Project]):
    class Meta:
        model = Project

    slug = factory.Sequence(lambda n: f"project-{n}")
    name = factory.LazyAttribute(lambda p: p.slug.replace("-", " ").title())
    created_at = factory.LazyFunction(_now)


class CodeArchiveFactory(factory.django.DjangoModelFactory[CodeArchive]):
    """Not a real archive; tests that unpack one pack it with apps.spiders.archive."""

    class Meta:
        model = CodeArchive

    digest = factory.Sequence(lambda n: hashlib.sha256(str(n).encode()).hexdigest())
    content = b""
    created_at = factory.LazyFunction(_now)


class BareSpiderFactory(factory.django.DjangoModelFactory[Spider]):
    """Without any version."""

    class Meta:
        model = Spider
        skip_postgeneration_save = True

    project = factory.SubFactory(ProjectFactory)
    name = factory.Sequence(lambda n: f"spider-{n}")
    kind = Spider.Kind.PYTHON
    titles = factory.LazyAttribute(lambda s: {"en": s.name.title()})
    created_at = factory.LazyFunction(_now)
    updated_at = factory.LazyFunction(_now)


class SpiderFactory(BareSpiderFactory):
    """With a current version, shaped by `version__parameter_schema=…` and the like."""

    @factory.post_generation
    def version(self: Spider, create: bool, extracted: Version | None, **kwargs: Any) -> None:
        if create:
            self.current_version = extracted or VersionFactory(spider=self, **kwargs)
            self.save(update_fields=["current_version"])


class VersionFactory(factory.django.DjangoModelFactory[Version]):
    """Does not make itself the current version of its spider."""

    class Meta:
        model = Version

    spider = factory.SubFactory(BareSpiderFactory)
    name = "1.0.0"
    digest = factory.LazyFunction(lambda: uuid.uuid4().hex * 2)
    code = factory.SubFactory(CodeArchiveFactory)
    command = factory.LazyFunction(lambda: ["python3", "-m", "clawspider", "run", "spider.py"])
    parameter_schema = factory.LazyFunction(lambda: {"type": "object", "properties": {}})
    created_at = factory.LazyFunction(_now)


class JobFactory(factory.django.DjangoModelFactory[Job]):
    class Meta:
        model = Job

    spider = factory.SubFactory(SpiderFactory)
    project = factory.SelfAttribute("spider.project")
    name = factory.Sequence(lambda n: f"job {n}")
    created_at = factory.LazyFunction(_now)
    updated_at = factory.LazyFunction(_now)


class HookFactory(factory.django.DjangoModelFactory[Hook]):
    """Nobody knows its token; hooks that are called are made by the service."""

    class Meta:
        model = Hook

    job = factory.SubFactory(JobFactory)
    name = factory.Sequence(lambda n: f"hook {n}")
    token_digest = factory.LazyFunction(lambda: uuid.uuid4().hex * 2)
    token_prefix = "abcdefgh"
    created_at = factory.LazyFunction(_now)


class NodeFactory(factory.django.DjangoModelFactory[Node]):
    class Meta:
        model = Node

    name = factory.Sequence(lambda n: f"node{n}")
    executor = "process"
    slots = 4
    memory_bytes = 8192 * MIB
    cpus = 4.0
    started_at = factory.LazyFunction(_now)
    heartbeat_at = factory.LazyFunction(_now)


class PoolFactory(factory.django.DjangoModelFactory[Pool]):
    class Meta:
        model = Pool

    name = factory.Sequence(lambda n: f"site{n}.example")
    limit = 3


class RunFactory(factory.django.DjangoModelFactory[Run]):
    """A queued run of a job; other states are written as they are, past `move()`."""

    class Meta:
        model = Run

    job = factory.SubFactory(JobFactory)
    job_name = factory.LazyAttribute(lambda r: r.job.name if r.job else "")
    spider = factory.LazyAttribute(lambda r: r.job.spider if r.job else SpiderFactory())
    project = factory.SelfAttribute("spider.project")
    version = factory.LazyAttribute(lambda r: r.spider.current_version)
    state = State.QUEUED
    trigger = Trigger.MANUAL
    request_id = factory.LazyFunction(uuid.uuid4)
    memory_bytes = 512 * MIB
    queued_at = factory.LazyFunction(_now)
    month = factory.LazyAttribute(lambda r: r.queued_at.date().replace(day=1))

    @factory.lazy_attribute
    def spec(self) -> dict[str, Any]:
        return {
            "parameters": {},
            "secrets": {},
            "env": {},
            "command": self.version.command,
            "requirements": self.version.requirements,
            "code": self.version.code_id,
            "limits": {"memory_mb": 512, "cpus": 1.0, "timeout_seconds": 3600, "grace_seconds": 10},
            "spider": self.spider.name,
            "version": self.version.name,
            "ok_codes": [0],
        }


class AttemptFactory(factory.django.DjangoModelFactory[Attempt]):
    class Meta:
        model = Attempt

    run = factory.SubFactory(RunFactory)
    number = 1
    node = factory.SubFactory(NodeFactory)
    executor = "process"
    run_dir = "/nowhere"
    claimed_at = factory.LazyFunction(_now)
