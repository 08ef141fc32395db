"""`clawspider scrapy`: a Scrapy project runs as it is; the panel sees its items, requests and end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import Finished, ScriptedServer, Start

SPIDER = """
import scrapy
from shop.items import Thing

class S(scrapy.Spider):
    name = "s"
    {head}
    def parse(self, response):
        {parse}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "shop" / "spiders").mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "spiders" / "__init__.py").touch()
    (folder / "shop" / "settings.py").write_text(
        "SPIDER_MODULES = ['shop.spiders']\nITEM_PIPELINES = {'shop.pipelines.Upper': 1}\nRETRY_TIMES = 1\n"
    )
    (folder / "shop" / "items.py").write_text(
        "import dataclasses, scrapy\n\nclass Thing(scrapy.Item):\n    name = scrapy.Field()\n    n = scrapy.Field()\n\n"
        "@dataclasses.dataclass\nclass Row:\n    name: str\n"
    )
    (folder / "shop" / "pipelines.py").write_text(
        "from scrapy.exceptions import DropItem\n\nclass Upper:\n    def process_item(self, item, spider=None):\n"
        "        if item['name'] == 'drop':\n            raise DropItem('no')\n"
        "        item['name'] = item['name'].upper()\n        return item\n"
    )
    return folder


@pytest.fixture
def crawl(start: Start, project: Path, scrapy_python: str, server: ScriptedServer) -> Any:
    """Start a spider with this head and parse body; the address of the server is its argument `url`."""

    def start_one(parse: str = "yield Thing(name='a')", head: str = "", name: str = "s", **params: Any) -> Any:
        head = head or "async def start(self):\n        yield scrapy.Request(self.url + '/a')"
        (project / "shop" / "spiders" / "s.py").write_text(SPIDER.format(head=head, parse=parse), encoding="utf-8")
        command = (scrapy_python, "-m", "clawspider", "scrapy", name)
        return start(*command, cwd=project, params={"url": server.url, **params})

    return start_one


@pytest.fixture(autouse=True)
def page(server: ScriptedServer) -> None:
    server.script = lambda seen, _: (404, {}, b"") if seen.path == "/robots.txt" else (200, {}, b"<p>hi</p>")


def test_items_come_after_the_projects_own_pipelines(crawl: Any, server: ScriptedServer) -> None:
    parse = """
        yield Thing(name='a', n=response.status)
        yield {'name': 'drop'}
        yield {'name': 'ünï', 'tags': {'x'}}
        yield response.follow('/b', self.parse_b)
    def parse_b(self, response):
        from shop.items import Row
        yield {'name': 'b'}
"""
    run: Finished = crawl(parse).finish()
    assert run.code == 0, run.log
    assert run.items == [{"name": "A", "n": 200}, {"name": "ÜNÏ", "tags": ["x"]}, {"name": "B"}]
    requests = run.records("request")
    assert [(one["url"], one["status"], one["method"]) for one in requests] == [
        (f"{server.url}/a", 200, "GET"),
        (f"{server.url}/b", 200, "GET"),
    ]
    finish = run.records("finish")[0]
    assert (finish["reason"], finish["exit_code"]) == ("finished", 0)
    assert (finish["stats"]["items"], finish["stats"]["dropped_items"]) == (3, 1)
    assert finish["scrapy"]["item_scraped_count"] == 3


def test_parameters_become_arguments_and_settings(crawl: Any) -> None:
    parse = "yield {'name': self.settings['BOT_NAME'], 'args': [self.tags, self.deep]}"
    run: Finished = crawl(parse, tags=["x", "y"], deep=2, **{"settings.BOT_NAME": "mine"}).finish()
    assert run.items == [{"name": "MINE", "args": [["x", "y"], 2]}]


def test_nothing_listens_on_a_port(crawl: Any) -> None:
    run: Finished = crawl().finish()
    assert "listening" not in run.log.lower()


def test_log_lines_show_their_level_and_debug_is_off_unless_asked_for(crawl: Any) -> None:
    run: Finished = crawl("self.logger.warning('careful'); self.logger.debug('detail'); yield {'name': 'a'}").finish()
    assert "[s] WARNING: careful" in run.log
    assert "detail" not in run.log
    asked: Finished = crawl(
        "self.logger.debug('detail'); yield {'name': 'a'}", **{"settings.LOG_LEVEL": "DEBUG"}
    ).finish()
    assert "[scrapy.core.engine] DEBUG: Crawled (200)" not in run.log
    assert asked.code == 0


@pytest.mark.parametrize(
    ("parse", "head", "code", "words"),
    [
        ("1 / 0", "", 1, "Every page failed in the spider's own code."),
        ("pass", "", 0, "0 items"),
        ("pass", "async def start(self):\n        raise RuntimeError('no list')\n        yield", 1, "no list"),
        ("pass", "def __init__(self, **kw):\n        raise ValueError('give a shop')", 2, "give a shop"),
        ("pass", "def __init__(self):\n        pass", 2, "unexpected keyword argument 'url'"),
        ("pass", "def __init__(self, **kw):\n        raise KeyError('x')", 1, "KeyError"),
        ("raise scrapy.exceptions.CloseSpider('nothing_new')", "", 3, "nothing_new"),
        ("raise scrapy.exceptions.CloseSpider('enough')", "", 0, "enough"),
        ("yield {'name': 'a', 'page': response.body}", "", 0, "Item left out: Field 'page' is of type bytes"),
    ],
)
def test_how_the_crawl_ends_shows_in_the_exit_code(crawl: Any, parse: str, head: str, code: int, words: str) -> None:
    run: Finished = crawl(parse, head).finish()
    assert (run.code, words in run.log) == (code, True), run.log
    assert run.records("finish")[0]["exit_code"] == code


def test_a_site_that_only_fails_is_a_failure_and_retries_are_counted(crawl: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (503, {}, b"")
    run: Finished = crawl().finish()
    assert run.code == 1
    assert run.records("finish")[0]["stats"]["retries"] == 1
    assert {one["status"] for one in run.records("request")} == {503}


def test_a_site_that_cannot_be_reached_is_a_failure(crawl: Any) -> None:
    run: Finished = crawl(url="http://127.0.0.1:9").finish()
    assert run.code == 1
    assert [(one["status"], one["error"]) for one in run.records("request")] == [(None, "no answer")] * 2


@pytest.mark.parametrize(
    ("name", "head", "code", "words"),
    [
        ("nope", "", 65, "The project has no spider nope; it has: s."),
        ("s", "x = = 1", 65, "line 7: invalid syntax"),
        ("s", "import no_such_module_of_ours", 69, 'The module "no_such_module_of_ours" is missing'),
        ("s", "1 / 0", 65, "The Scrapy project cannot be loaded: ZeroDivisionError"),
    ],
)
def test_a_project_that_cannot_be_loaded_is_explained(crawl: Any, name: str, head: str, code: int, words: str) -> None:
    run: Finished = crawl(head=head, name=name).finish()
    assert (run.code, words in run.log.splitlines()[-1]) == (code, True), run.log


def test_no_project_is_said(start: Start, scrapy_python: str) -> None:
    run = start(scrapy_python, "-m", "clawspider", "scrapy", "s").finish()
    assert (run.code, "no scrapy.cfg" in run.log) == (65, True)


def test_scrapy_that_is_not_installed_is_a_missing_requirement(start: Start, python: str, project: Path) -> None:
    run = start(python, "-S", "-m", "clawspider", "scrapy", "s", cwd=project).finish()
    assert run.code == 69
    assert "is missing: add it to requirements.txt." in run.log


def test_term_closes_the_crawl_politely(crawl: Any, server: ScriptedServer) -> None:
    def script(*_: object) -> tuple[int, dict[str, str], bytes]:
        time.sleep(0.2)
        return 200, {}, b""

    server.script = script
    parse = """
        yield {'name': 'page'}
        yield response.follow('/a', self.parse, dont_filter=True)
    def closed(self, reason):
        self.logger.info('closed says %s', reason)
"""
    run = crawl(parse)
    run.wait_for('"PAGE"')
    run.terminate()
    run.terminate()
    ended = run.finish(seconds=15)
    assert ended.code == 143
    assert "closed says shutdown" in ended.log
    assert ended.records("finish")[0]["reason"] == "stopped"
