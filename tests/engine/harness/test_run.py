"""`clawspider run`: life of a spider, exit codes, stopping, and what it leaves in the spools."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.conftest import BARE_ENVIRONMENT, HARNESS, ScriptedServer, Seen, Start

HEAD = "from clawspider import *\nimport os, sys, time\n"
SMALL = (
    HEAD
    + """
class Small(BaseSpider):
    name = "small"
    delay = 0
    backoff = 0.01
    respect_robots = False
    def start_requests(self):
        yield Request(self.params["url"] + "/a")
    def parse(self, response):
        yield {"path": response.url[-2:], "status": response.status}
"""
)


def answer(body: bytes = b"hello", status: int = 200, **headers: str) -> tuple[int, dict[str, str], bytes]:
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


def test_a_spider_lives_from_on_start_to_on_close(start_spider: Start, server: ScriptedServer) -> None:
    server.script = lambda seen, _: answer(b'<a href="/b">b</a>')
    run = start_spider(
        SMALL.replace('yield {"path"', 'yield response.follow(response.first("a"))\n        yield {"path"')
        + """
    def on_start(self):
        self.logger.info("starting with %s", sorted(self.params))
        progress(0, 2, "first page")
    def on_close(self, reason):
        output("why", reason)
        stat(extra=7)
""",
        params={"url": server.url},
    ).finish()
    assert run.code == 0, run.log
    assert run.items == [{"path": "/a", "status": 200}, {"path": "/b", "status": 200}]
    assert "[small] INFO: starting with ['url']" in run.log
    assert run.records("output") == [{"why": "finished"}]
    assert run.records("progress") == [{"done": 0, "total": 2, "text": "first page"}]
    assert [one["url"] for one in run.records("request")] == [server.url + "/a", server.url + "/b"]
    assert run.records("stat")[-1]["requests"] == 2
    finish = run.records("finish")
    assert len(finish) == 1
    assert (finish[0]["reason"], finish[0]["exit_code"], finish[0]["stats"]["items"]) == ("finished", 0, 2)
    assert server.paths() == ["/a", "/b"]  # the link from /b to itself was not fetched again


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("def parse(self, r): 1 / 0", 1, "Every page failed in the spider's own code."),
        ("def on_start(self): 1 / 0", 1, "ZeroDivisionError"),
        ("def start_requests(self): raise RuntimeError('no list')", 1, "no list"),
        ("def on_close(self, reason): 1 / 0", 1, "on_close failed"),
        ("def __init__(self, params): raise BadParameters('url is missing')", 2, "ERROR: url is missing"),
        ("def __init__(self, params): int('many')", 2, "does not accept its parameters"),
        ("def on_start(self): raise BadParameters('url is missing')", 2, "ERROR: url is missing"),
        ("def parse(self, r): raise NothingNew", 3, "Closed: nothing_new."),
        ("def parse(self, r): raise CloseSpider('enough')", 0, "Closed: enough."),
        ("def parse(self, r): sys.exit(42)", 42, "Closed: exit."),
        ("def parse(self, r): sys.exit('gave up')", 1, "gave up"),
        ("def parse(self, r): return [{'a': 1}]", 0, "1 items"),
        ("def parse(self, r): return {'a': 1}", 0, "1 items"),
        ("def parse(self, r): pass", 0, "0 items"),
        ("def parse(self, r): yield None", 0, "0 items"),
        ("def parse(self, r): yield 5", 1, "yields dicts and Requests, not int"),
        ("parse = None", 1, "NoneType"),
    ],
)
def test_how_a_spider_ends_shows_in_its_exit_code(
    start_spider: Start, server: ScriptedServer, body: str, code: int, words: str
) -> None:
    server.script = lambda *_: answer()
    run = start_spider(f"{SMALL}\n    {body}\n", params={"url": server.url}).finish()
    assert (run.code, words in run.log) == (code, True), run.log


def test_one_failing_page_of_two_is_counted_and_no_failure(start_spider: Start, server: ScriptedServer) -> None:
    server.script = lambda *_: answer()
    run = start_spider(
        SMALL
        + """
    def start_requests(self):
        yield Request(self.params["url"] + "/a")
        yield Request(self.params["url"] + "/b")
    def parse(self, response):
        yield {"ok": 1} if response.url.endswith("/a") else {}["no such key"]
""",
        params={"url": server.url},
    ).finish()
    assert run.code == 0, run.log
    assert "Traceback" in run.log
    assert run.records("finish")[0]["stats"]["errors"] == 1


def test_no_start_request_succeeded_is_a_failure(start_spider: Start, server: ScriptedServer) -> None:
    run = start_spider(SMALL, params={"url": server.url}).finish()
    assert run.code == 1
    assert "the server answered 404" in run.log
    assert "ERROR: No start request succeeded." in run.log
    assert run.records("finish")[0]["reason"] == "no_response"


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        ("def broken(:\n", 65, "spider.py, line 1: "),
        (
            "x = 1\nimport no_such_module_of_ours.part\n",
            69,
            'The module "no_such_module_of_ours" is missing: add it to ',
        ),
        ("from clawspider import NoSuchName\n", 65, "spider.py cannot be loaded: ImportError: cannot import name"),
        ("1 / 0\n", 65, "spider.py cannot be loaded: ZeroDivisionError: division by zero."),
        ("x = 1\n", 65, "spider.py defines no BaseSpider class."),
        (HEAD + "class A(BaseSpider): pass\nclass B(BaseSpider): pass\n", 65, "several spiders (A, B)"),
        ("raise SystemExit(9)\n", 9, ""),
        ("\0", 65, "null bytes"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_explained_in_one_sentence(
    start_spider: Start, text: str, code: int, sentence: str
) -> None:
    run = start_spider(text).finish()
    assert run.code == code, run.log
    assert sentence in run.log.splitlines()[-1] if sentence else not run.log
    assert ("Traceback" in run.log) == (code in (65, 69) and "BaseSpider" not in text and text != "x = 1\n")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("nowhere.py", "There is no file nowhere.py."),
        ("spider.py:Nope", "spider.py has no BaseSpider class Nope; it defines: Small."),
    ],
)
def test_a_target_that_is_not_there_is_named(start_spider: Start, target: str, sentence: str) -> None:
    run = start_spider(SMALL, target=target).finish()
    assert run.code == 65
    assert run.log.splitlines()[-1].endswith(sentence)


def test_a_spider_imports_modules_of_its_folder(start_spider: Start, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'helped'\n")
    run = start_spider(
        HEAD + "import helper\nclass S(BaseSpider):\n    def start_requests(self):\n        yield {'w': helper.WORD}\n"
    ).finish()
    assert (run.code, run.items) == (0, [{"w": "helped"}])


@pytest.mark.parametrize("params", ["{", "[1]", '"x"'])
def test_parameters_that_are_no_object_end_with_code_2(start_spider: Start, params: str) -> None:
    run = start_spider(SMALL, env={"CLAW_PARAMS": params}).finish()
    assert run.code == 2
    assert "CLAW_PARAMS" in run.log


def test_secrets_come_from_their_files(start_spider: Start, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "password").write_text("gehëim\n", encoding="utf-8")
    (folder / ".hidden").write_text("x")
    text = HEAD + "class S(BaseSpider):\n    def start_requests(self):\n        yield self.params\n"
    run = start_spider(text, params={"a": 1, "password": ""}, env={"CLAW_SECRETS": str(folder)}).finish()
    assert run.items == [{"a": 1, "password": "gehëim\n"}]


@pytest.mark.parametrize("where", ["time.sleep(60)", "while True: pass", "yield Request(self.params['url'] + '/hang')"])
def test_term_stops_a_spider_wherever_it_is(start_spider: Start, server: ScriptedServer, where: str) -> None:
    def script(seen: Seen, _: int) -> tuple[int, dict[str, str], bytes]:
        return answer(b"x", Content_Length="1000")

    server.script = script
    run = start_spider(
        SMALL.replace('"small"', '"small"; retries = 100')
        + f"""
    def start_requests(self):
        print("ready", flush=True)
        {where}
    def on_close(self, reason):
        self.logger.info("closing: %s", reason)
""",
        params={"url": server.url},
    )
    run.wait_for("ready\n")
    run.terminate()
    ended = run.finish(seconds=5)
    assert ended.code == 143
    assert "closing: stopped" in ended.log
    assert ended.records("finish")[0]["reason"] == "stopped"


def test_a_second_term_does_not_disturb_closing(start_spider: Start) -> None:
    run = start_spider(
        HEAD
        + """
class S(BaseSpider):
    def start_requests(self):
        print("ready", flush=True)
        time.sleep(60)
        yield
    def on_close(self, reason):
        print("closing", flush=True)
        time.sleep(0.5)
        yield_last = emit({"last": 1})
"""
    )
    run.wait_for("ready\n")
    run.terminate()
    run.wait_for("closing\n")
    run.terminate()
    ended = run.finish(seconds=5)
    assert (ended.code, ended.items) == (143, [{"last": 1}])


def test_an_item_that_cannot_be_written_costs_one_item(start_spider: Start) -> None:
    text = (
        HEAD
        + """
class S(BaseSpider):
    def start_requests(self):
        yield {"n": 1}
        yield {"n": 2, "when": object()}
        yield {"n": 3, "html": "x" * (2 * 1024 * 1024), "url": "u"}
        yield {"n": 4}
"""
    )
    run = start_spider(text).finish()
    assert (run.code, [item["n"] for item in run.items]) == (0, [1, 4])
    assert "ERROR: Item left out: Field 'when' is of type object, which cannot be written as JSON." in run.log
    assert "at most 1,048,576 are allowed. Its largest field is 'html' with 2,097,154 bytes." in run.log
    assert run.records("finish")[0]["stats"]["rejected_items"] == 2


def test_odd_characters_in_the_log_do_not_end_the_crawl(start_spider: Start) -> None:
    text = HEAD + "class S(BaseSpider):\n    def start_requests(self):\n        print('\\ud800')\n"
    run = start_spider(text + "        self.logger.error('\\udfff')\n        yield {'n': 1}\n").finish()
    assert (run.code, run.items) == (0, [{"n": 1}])
    assert "\\ud800" in run.log


def clawspider(*arguments: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clawspider", *arguments],
        cwd=cwd,
        env=BARE_ENVIRONMENT | {"PYTHONPATH": str(HARNESS)} | env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_on_a_laptop_records_go_to_stdout_and_the_log_to_stderr(tmp_path: Path, server: ScriptedServer) -> None:
    server.script = lambda *_: answer()
    (tmp_path / "spider.py").write_text(SMALL + "    def on_close(self, reason):\n        output('n', 1)\n")
    ended = clawspider("run", "spider.py", "-p", f"url={server.url}", "-p", "n=5", cwd=tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == ['{"path":"/a","status":200}', 'output {"n":1}']
    assert "[clawspider] INFO: Closed: finished. 1 items, 1 requests, 0 errors." in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("item", '{"a": "ü"}'), ['{"a":"ü"}']),
        (("emit", "sku=7", "title=two words", "tags=[1,2]"), ['{"sku":7,"title":"two words","tags":[1,2]}']),
        (("emit", "--verb", "output", "total=12"), ['output {"total":12}']),
    ],
)
def test_shell_spiders_write_records_by_command(tmp_path: Path, arguments: tuple[str, ...], written: list[str]) -> None:
    records = tmp_path / "records"
    assert clawspider(*arguments, cwd=tmp_path, CLAW_RECORDS=str(records)).returncode == 0
    assert records.read_text("utf-8").splitlines() == written


def test_shell_spiders_read_parameters_by_command(tmp_path: Path) -> None:
    params = json.dumps({"words": ["a", "ß"], "n": 3, "text": "plain"})
    shown = [clawspider("param", name, "none", cwd=tmp_path, CLAW_PARAMS=params).stdout for name in ("words", "n", "x")]
    assert shown == ['["a", "ß"]\n', "3\n", "none\n"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 64), (("fly",), 64), (("run",), 64), (("item", "{"), 2), (("item", "[1]"), 2), (("emit", "a"), 2)],
)
def test_wrong_usage_has_its_own_exit_code(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    ended = clawspider(*arguments, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr


def test_the_version_is_told(tmp_path: Path) -> None:
    assert clawspider("--version", cwd=tmp_path).stdout.startswith("clawspider 1.")


def test_nothing_of_the_panel_and_nothing_outside_the_standard_library_is_imported(tmp_path: Path) -> None:
    names = [
        "records",
        "params",
        "logs",
        "http",
        "markup",
        "fetch",
        "robots",
        "stats",
        "crawl",
        "loading",
        "spider",
        "exits",
        "__main__",
    ]
    code = f"import sys, {', '.join('clawspider.' + name for name in names)}\n"
    code += "known = sys.stdlib_module_names | {'clawspider', '__main__'}\n"
    code += "print(sorted({name.partition('.')[0] for name in sys.modules} - known))"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=BARE_ENVIRONMENT | {"PYTHONPATH": str(HARNESS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == "[]"


def test_no_syntax_newer_than_python_3_8_is_used() -> None:
    for path in (HARNESS / "clawspider").glob("*.py"):
        ast.parse(path.read_text("utf-8"), feature_version=(3, 8))
