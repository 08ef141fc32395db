"""The examples of docs/spiders.md are copied by readers: each runs as it stands."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.engine.conftest import REPOSITORY, Start

TEXT = (REPOSITORY / "docs" / "spiders.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"```\w+ title=(\S+)\n(.*?)```", TEXT, re.DOTALL))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for name, body in EXAMPLES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("written")
def test_the_python_spider_runs(start: Start, python: str, demo_site: str) -> None:
    params = {"start_url": f"{demo_site}/quotes/page/1/", "max_pages": 2}
    run = start(python, "-m", "clawspider", "run", "spider.py:QuotesSpider", params=params).finish()
    assert (run.code, len(run.items), run.records("output")) == (0, 16, [{"pages": 2}])


def test_the_scrapy_spider_runs(start: Start, scrapy_python: str, demo_site: str, written: Path) -> None:
    (written / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (written / "shop" / "settings.py").write_text("SPIDER_MODULES = ['shop.spiders']\n")
    params = {"start_url": f"{demo_site}/quotes/page/1/"}
    run = start(scrapy_python, "-m", "clawspider", "scrapy", "quotes", params=params).finish()
    assert (run.code, len(run.items)) == (0, 47)


@pytest.mark.usefixtures("written")
def test_the_shell_examples_run(start: Start, python: str) -> None:
    prices = start("sh", "prices.sh").finish()
    assert (prices.code, [item["sku"] for item in prices.items]) == (0, ["A1", "B2", "C3"])
    assert prices.records("output") == [{"prices": 3}]
    path = f"{Path(python).parent}:/usr/bin:/bin"
    items = start("sh", "items.sh", env={"PATH": path}, params={"limit": 5}).finish()
    assert items.code == 0, items.log
    assert items.items == [{"title": "two words", "limit": 5}, {"title": "as JSON", "tags": ["a", "b"]}]


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(("interpreter", "script", "count"), [("node", "spider.js", 1), ("perl", "spider.pl", 3)])
def test_the_examples_in_other_languages_run(start: Start, interpreter: str, script: str, count: int) -> None:
    if not shutil.which(interpreter):
        pytest.xfail(f"{interpreter} is not installed and nothing of ours needs it")
    run = start(interpreter, script, params={"limit": 1}).finish()
    assert (run.code, len(run.items)) == (0, count), run.log


def test_the_registry_example_is_valid() -> None:
    found = re.search(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert found
    registry = json.loads(found.group(1))
    for spider in registry["spiders"]:
        Draft202012Validator.check_schema(spider["parameter_schema"])


def test_every_exit_code_is_documented() -> None:
    exits = (REPOSITORY / "apps" / "engine" / "harness" / "clawspider" / "exits.py").read_text("utf-8")
    table = TEXT.partition("## Exit codes")[2].partition("\n## ")[0]
    for code in re.findall(r"^[A-Z_]+ = (\d+)$", exits, re.MULTILINE):
        assert re.search(rf"\b{code}\b", table), code
