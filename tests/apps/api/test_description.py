"""The OpenAPI description and its page."""

from __future__ import annotations

from django.core.management import call_command


def test_the_description_is_valid_and_complete(tmp_path):
    target = tmp_path / "schema.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(target))
    text = target.read_text()
    for address in ("/api/v1/jobs/{id}/run/", "/api/v1/runs/{id}/items.csv", "/api/v1/spiders/{name}/schema/"):
        assert f"  {address}:" in text
