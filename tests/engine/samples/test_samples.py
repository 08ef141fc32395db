"""The samples against the demo site, started as the registry says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from jsonschema import Draft202012Validator

from tests.engine.conftest import SAMPLES, Finished, Start

REGISTRY = json.loads((SAMPLES / "spider_registry.json").read_text("utf-8"))
SPIDERS = {spider["name"]: spider for spider in REGISTRY["spiders"]}


@pytest.fixture
def sample(start: Start, demo_site: str, request: pytest.FixtureRequest) -> Any:
    """Run a sample with these parameters and check its items against its schema and key."""

    def run_one(name: str, *, site: str = demo_site, code: int = 0, **params: Any) -> Finished:
        spider = SPIDERS[name]
        Draft202012Validator(spider["parameter_schema"]).validate(params)
        python = request.getfixturevalue("scrapy_python") if spider["kind"] == "scrapy" else sys.executable
        verb = {"python": "run", "scrapy": "scrapy"}.get(spider["kind"])
        command = [python, "-m", "clawspider", verb, spider["entry"]] if verb else spider["entry"]
        env = {"CLAW_DEMO_SITE": site} if site else {}
        run = start(*command, cwd=SAMPLES / spider["path"], params=params, env=env).finish()
        assert run.code == code, run.log
        item_schema = Draft202012Validator(spider["item_schema"])
        for item in run.items:
            item_schema.validate(item)
        keys = [tuple(str(item[field]) for field in spider["unique_key"]) for item in run.items]
        assert len(set(keys)) == len(keys)
        return run

    return run_one


@pytest.mark.parametrize("spider", REGISTRY["spiders"], ids=str)
def test_the_registry_holds_what_its_format_asks_for(spider: dict[str, Any]) -> None:
    for schema in (spider["parameter_schema"], spider["item_schema"]):
        Draft202012Validator.check_schema(schema)
    properties = spider["parameter_schema"]["properties"]
    for name, property_ in properties.items():
        assert {"title", "x-title-zh-hans", "description", "x-description-zh-hans"} <= property_.keys(), name
    Draft202012Validator(spider["parameter_schema"]).validate(
        {name: property_["default"] for name, property_ in properties.items() if "default" in property_}
    )
    assert set(spider["unique_key"]) <= set(spider["item_schema"]["properties"])
    for text in (spider["title"], spider["description"]):
        assert set(text) == {"en", "zh-hans"}
    assert (SAMPLES / spider["path"]).is_dir()


def test_quotes_are_collected_over_all_pages_with_their_authors(sample: Any) -> None:
    run = sample("quotes")
    assert len(run.items) == 47
    assert all(item["born"] and item["author_url"] for item in run.items)
    texts = {item["text"] for item in run.items}
    assert {"上善若水。", "“Hope” is the thing with feathers - That perches in the soul -"} <= texts
    assert {"quotes": 47} in run.records("output")
    assert run.records("progress")[-1]["done"] == 6


def test_quotes_can_be_narrowed(sample: Any, demo_site: str) -> None:
    run = sample("quotes", tag="books", with_authors=False, max_pages=2, start_url=f"{demo_site}/quotes/")
    assert run.items
    assert all("books" in item["tags"] and "born" not in item for item in run.items)
    assert len([one for one in run.records("request") if "robots" not in one["url"]]) == 2


def test_books_are_collected_with_their_details(sample: Any) -> None:
    run = sample("books", max_pages=5)
    assert len(run.items) == 60
    book = next(item for item in run.items if item["title"] == "Noodles at Midnight")
    assert (book["currency"], book["rating"], book["category"], book["stock"]) == ("GBP", 4, "Cooking", 16)
    assert book["description"]
    assert {"小山坡上的灯塔", "Das stille Haus"} <= {item["title"] for item in run.items}


def test_books_can_be_narrowed(sample: Any) -> None:
    run = sample("books", max_pages=5, keywords=["the", "星"], min_rating=5, include_description=False)
    assert {item["title"] for item in run.items} >= {"The Sea Is a Library", "星星的邻居"}
    assert all(item["rating"] == 5 for item in run.items)
    assert len([one for one in run.records("request") if "index.html" in one["url"]]) == 0


def test_prices_are_written_by_a_shell_script(sample: Any) -> None:
    run = sample("prices")
    assert len(run.items) == 60
    assert run.items[0]["sku"] == "BK-0001"
    assert run.records("output") == [{"prices": 60}]
    assert "INFO: 60 prices" in run.log


def test_prices_can_be_narrowed(sample: Any) -> None:
    cheap = sample("prices", max_price=15.5).items
    assert 0 < len(cheap) < 60
    assert max(item["price"] for item in cheap) <= 15.5


def test_prices_reads_any_csv(sample: Any, server: Any) -> None:
    rows = 'sku,title,currency,price,date\r\n"a,1","say ""hi"" \\ 日本",EUR,007.50,2026-01-01\r\n'
    rows += "b,x,EUR,none,\r\nc,,,0,\r\n"
    server.script = lambda *_: (200, {}, b"\xef\xbb\xbf" + rows.encode())
    run = sample("prices", start_url=f"{server.url}/list.csv?a=b")
    assert run.items == [
        {"sku": "a,1", "title": 'say "hi" \\ 日本', "currency": "EUR", "price": 7.5, "date": "2026-01-01"},
        {"sku": "c", "title": "", "currency": "", "price": 0, "date": ""},
    ]
    assert "WARNING: line 3 has no price" in run.log
    assert server.paths() == ["/list.csv?a=b"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, {}, b""), "answered 404"),
        ((200, {"Content-Length": "50"}, b"sku,"), "the answer was cut short"),
        ((200, {}, b"<html>"), "The first line is not sku,title"),
        ((200, {}, b"sku,title,currency,price,date\n"), "The list holds no prices."),
    ],
)
def test_prices_fails_with_a_reason(sample: Any, server: Any, answer: Any, words: str) -> None:
    server.script = lambda *_: answer
    assert words in sample("prices", start_url=f"{server.url}/x", code=1).log


@pytest.mark.parametrize("name", ["quotes", "books", "prices"])
def test_a_sample_without_any_site_says_what_is_missing(sample: Any, name: str) -> None:
    assert "Give a start_url: there is no demo site." in sample(name, site="", code=2).log


def test_slow_counts_lines_and_items(sample: Any) -> None:
    run = sample("slow", count=10, per_second=50, items_every=3, line_bytes=40)
    lines = [line for line in run.log.splitlines() if line.startswith("line ")]
    assert [line.split()[1] for line in lines] == [str(n) for n in range(1, 11)]
    assert {len(line) for line in lines} == {39}
    assert [item["n"] for item in run.items] == [1, 2, 3]


def test_slow_ends_as_it_is_told(sample: Any) -> None:
    assert len(sample("slow", count=5, per_second=0, items_every=1, exit_code=3, code=3).items) == 5


def test_slow_keeps_its_rate_without_drift(sample: Any) -> None:
    run = sample("slow", count=3000, per_second=1000, items_every=10)
    assert 2.9 < run.seconds < 6
    assert len(run.items) == 300


def test_slow_without_a_rate_prints_two_hundred_thousand_lines_in_seconds(sample: Any) -> None:
    run = sample("slow", count=200_000, per_second=0, items_every=100, line_bytes=100)
    assert run.log.count("\nline ") + run.log.startswith("line ") == 200_000
    assert len(run.items) == 2000
    assert run.seconds < 10


def test_the_shell_sample_is_clean_for_shellcheck() -> None:
    shellcheck = shutil.which("shellcheck")
    if not shellcheck:
        pytest.skip("no shellcheck: apt-get install -y shellcheck")
    subprocess.run([shellcheck, "-s", "sh", str(SAMPLES / "prices" / "prices.sh")], check=True)


def fetch(url: str) -> str:
    with urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_prices_depend_on_the_day_alone(demo_site: str) -> None:
    days = [fetch(f"{demo_site}/prices.csv?date=2026-03-{day:02}") for day in (1, 1, 2)]
    assert days[0] == days[1]
    prices = [[line.split(",")[-2] for line in day.splitlines()] for day in days]
    changed = sum(before != after for before, after in zip(prices[0], prices[2], strict=True))
    assert 5 < changed < 40


def test_a_busy_address_is_one_clear_sentence(demo_site: str) -> None:
    serve = Path(__file__).resolve().parents[3] / "deploy" / "demo_site" / "serve.py"
    command = [sys.executable, str(serve), "--bind", demo_site.removeprefix("http://")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Address already in use." in ended.stderr
