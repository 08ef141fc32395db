"""Templates on the form of a job: any kind of box takes one, keeps it, and says what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from apps.core.errors import Invalid
from apps.core.schema_forms import UNKNOWN, SchemaForm
from apps.jobs.models import Job
from apps.jobs.services import update_job
from apps.spiders.models import Spider
from tests.factories import AdminFactory, SpiderFactory

pytestmark = pytest.mark.django_db

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["pages"],
    "properties": {
        "pages": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "since": {"type": "string", "format": "date"},
        "size": {"type": "string", "enum": ["small", "large"]},
        "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
        "words": {"type": "array", "items": {"type": "string"}},
        "point": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "any": {"type": ["object", "array", "null"]},
        "token": {"type": "string", "writeOnly": True},
    },
}
TEXT = "{{ upstream.a.b }}"


def form(data: dict[str, Any], **given: Any) -> SchemaForm:
    posted = QueryDict(mutable=True)
    posted.update({f"p.{name}": value for name, value in data.items()})
    return SchemaForm(SCHEMA, data=posted, samples=lambda _text: UNKNOWN, **given)


@pytest.mark.parametrize("name", ["pages", "ratio", "deep", "since", "size", "kinds", "words", "point", "any"])
def test_every_box_takes_a_template_and_shows_it_again(name: str) -> None:
    typed = form({"pages": "1", name: TEXT})

    assert typed.is_valid(), typed.errors
    assert typed.parameters[name] == TEXT

    again = SchemaForm(SCHEMA, initial=typed.parameters, samples=lambda _text: UNKNOWN)
    assert again.mode == "form"
    html = str(again)
    assert f'name="p.{name}"' in html
    assert html.count(TEXT) == 1


def test_without_samples_a_template_is_only_a_text() -> None:
    posted = QueryDict(mutable=True)
    posted.update({"p.pages": TEXT})
    typed = SchemaForm(SCHEMA, data=posted)
    assert not typed.is_valid()
    assert list(typed.errors) == ["pages"]


def test_a_secret_is_never_a_template() -> None:
    typed = form({"pages": "1", "token": TEXT})
    assert typed.is_valid()
    assert typed.secrets == {"token": TEXT}
    assert "token" not in typed.parameters


# -- on the page ------------------------------------------------------------------------------------------------------


@pytest.fixture
def spider() -> Spider:
    return SpiderFactory(kind="command", version__parameter_schema=SCHEMA)


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(AdminFactory(), backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


def posted(spider: Spider, **changes: Any) -> dict[str, Any]:
    fields = {
        "spider": spider.name,
        "name": "daily",
        "memory_mb": "256",
        "cpus": "1",
        "timeout_seconds": "60",
        "grace_seconds": "5",
        "priority": "5",
        "env": "",
        "p.pages": "1",
        "p__mode": "form",
        "arguments": "",
        "calls": "",
    }
    return fields | changes


def test_a_job_is_saved_with_templates_arguments_and_calls(staff: Client, spider: Spider) -> None:
    answer = staff.post(
        "/jobs/new/",
        posted(
            spider,
            **{
                "p.since": "{{ yesterday }}",
                "p.pages": '{{ scheduled_for | date:"%d" }}',
                "arguments": '--from={{ params.since }}\r\n"a\\nb"\r\n\r\n$(id)',
            },
        ),
    )
    assert answer.status_code == 302, answer.content.decode()
    job = Job.objects.get()
    assert job.parameters["since"] == "{{ yesterday }}"
    assert job.arguments == ["--from={{ params.since }}", "a\nb", "$(id)"]
    page = staff.get(f"/jobs/{job.pk}/edit/").content.decode()
    assert 'value="{{ yesterday }}"' in page
    assert "&quot;a\\nb&quot;" in page


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("p.since", "{{ toady }}", "toady"),
        ("p.pages", "{{ today }}", "whole number"),
        ("p.since", "{{ job.name }}", "year-month-day"),
        ("p.since", "{{ ''.__class__ }}", "__class__"),
        ("p.size", "{% include 'x' %}", "Choose"),
        ("p.since", "{% include 'x' %}", "{% include"),
        ("p.since", "{{ upstream.x.y }}", "not upstream"),
        ("arguments", "{{ nobody }}", "nobody"),
        ("env", "DAY={{ nobody }}", "nobody"),
        ("calls", '{"a": {"url": "http://127.0.0.1/"}}', "127.0.0.1"),
        ("calls", '{"a": {"url": "file:///etc/passwd"}}', "http"),
        ("calls", '{"a": {"url": "https://{{ job.name }}/"}}', "address"),
        ("calls", '{"a": {}}', "url"),
        ("calls", "[", "JSON"),
    ],
)
def test_what_is_wrong_is_said_at_its_box(staff: Client, spider: Spider, field: str, value: str, said: str) -> None:
    answer = staff.post("/jobs/new/", posted(spider, **{field: value}))
    page = answer.content.decode().replace("&#x27;", "'").replace("&quot;", '"')
    assert answer.status_code == 422
    assert said in page
    assert not Job.objects.exists()


def test_a_spider_that_is_no_command_takes_no_arguments(staff: Client) -> None:
    """What starts it has options of its own: no value may become one."""
    other = SpiderFactory(version__parameter_schema=SCHEMA)
    assert 'name="arguments"' not in staff.get(f"/jobs/new/?spider={other.name}").content.decode()
    assert staff.post("/jobs/new/", posted(other, arguments="--help")).status_code == 302
    job = Job.objects.get()
    assert job.arguments == []
    with pytest.raises(Invalid) as refused:
        update_job(job=job, by=AdminFactory(), now=job.created_at, arguments=["--help"])
    assert list(refused.value.fields) == ["arguments"]


def test_the_form_shows_what_templates_become(staff: Client, spider: Spider) -> None:
    data = posted(
        spider,
        **{
            "p.since": "{{ yesterday }}",
            "p.deep": "{{ upstream.a.b }}",
            "p.pages": "{{ today }}",
            "arguments": "--node={{ node.name }}",
        },
    )

    page = staff.post(f"/jobs/preview/?spider={spider.name}", data).content.decode()

    assert "{{ yesterday }}</bdi></code> → <bdi>20" in page
    assert "whole number" in page
    assert "known only in the run" in page
    assert staff.post(f"/jobs/preview/?spider={spider.name}", posted(spider)).content.decode().strip() == ""
    assert staff.post("/jobs/preview/?spider=none", data).status_code == 404
    assert staff.post("/jobs/preview/?job=1x", data).status_code == 404


def test_a_box_that_cannot_hold_a_text_offers_to(staff: Client, spider: Spider) -> None:
    page = staff.get(f"/jobs/new/?spider={spider.name}").content.decode()
    assert page.count("data-schema-template") == 4
