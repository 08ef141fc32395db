"""Command line: `python3 -m clawspider run FILE[:CLASS]`, `scrapy NAME`, and records for shell scripts."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from typing import Any, NoReturn

from clawspider import exits, records
from clawspider.crawl import run_spider
from clawspider.loading import load_spider
from clawspider.logs import configure
from clawspider.params import from_arguments, params
from clawspider.version import VERSION

logger = logging.getLogger("clawspider")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(exits.USAGE, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    configure()
    try:
        code = options.do(options)
    except exits.CannotLoad as error:
        logger.error("%s", error)  # noqa: TRY400 - the traceback, where there is one, is printed already
        return error.exit_code
    except (exits.BadParameters, records.RecordError) as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence says it all
        return exits.BAD_PARAMETERS
    return int(code)


def run(options: argparse.Namespace) -> int:
    return run_spider(load_spider(options.spider), _run_params(options))


def scrapy(options: argparse.Namespace) -> int:
    values = _run_params(options)
    try:
        runner = importlib.import_module("clawspider.scrapy_run")
    except ModuleNotFoundError as error:
        name = (error.name or "scrapy").partition(".")[0]
        raise exits.CannotLoad(f'The module "{name}" is missing: add it to requirements.txt.', missing=name) from error
    return int(runner.run(options.spider, values))


def write_item(options: argparse.Namespace) -> int:
    try:
        item = json.loads(sys.stdin.read() if options.json == "-" else options.json)
    except ValueError as error:
        raise exits.BadParameters(f"The item is not valid JSON: {error}.") from error
    records.emit(item)
    return exits.OK


def write_pairs(options: argparse.Namespace) -> int:
    records.write(options.verb, from_arguments(options.pairs))
    return exits.OK


def show_param(options: argparse.Namespace) -> int:
    value = params().get(options.name)
    if value is None:
        print(options.default)
    else:
        print(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return exits.OK


def _run_params(options: argparse.Namespace) -> dict[str, Any]:
    return {**params(), **from_arguments(options.param)}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="clawspider", description=__doc__)
    parser.add_argument("--version", action="version", version=f"clawspider {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    for name, do, what in (
        ("run", run, "run a BaseSpider: file.py or file.py:ClassName"),
        ("scrapy", scrapy, "run a spider of the Scrapy project in this folder"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("spider")
        command.add_argument("-p", "--param", action="append", default=[], metavar="NAME=VALUE")
        command.set_defaults(do=do)

    command = commands.add_parser("item", help="write one item given as JSON (- reads it from stdin)")
    command.add_argument("json")
    command.set_defaults(do=write_item)

    command = commands.add_parser("emit", help="write one record of NAME=VALUE pairs, an item unless --verb says else")
    command.add_argument("--verb", default="item", choices=("item", "output", "progress", "stat"))
    command.add_argument("pairs", nargs="+", metavar="NAME=VALUE")
    command.set_defaults(do=write_pairs)

    command = commands.add_parser("param", help="print one parameter of the run")
    command.add_argument("name")
    command.add_argument("default", nargs="?", default="")
    command.set_defaults(do=show_param)
    return parser


if __name__ == "__main__":
    sys.exit(main())
