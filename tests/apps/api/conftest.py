"""A caller of the API and what it may see."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.jobs.models import Job
from apps.spiders.models import Project
from tests.factories import JobFactory, ProjectFactory, SpiderFactory, UserFactory

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "words": {"type": "array", "items": {"type": "string"}},
        "password": {"type": "string", "writeOnly": True},
    },
}


@pytest.fixture
def project() -> Project:
    return ProjectFactory()


@pytest.fixture
def owner(project: Project) -> User:
    user = UserFactory()
    grant(user, "owner", project)
    return user


@pytest.fixture
def api(owner: User) -> APIClient:
    """Signed in without the token, whose own tests are elsewhere."""
    client = APIClient()
    client.force_authenticate(owner)
    return client


@pytest.fixture
def job(project: Project) -> Job:
    spider = SpiderFactory(project=project, version__parameter_schema=SCHEMA)
    return JobFactory(spider=spider, parameters={"count": 5})
