"""Registers the programs of tests/cases/spiders as one spider, so that each runs through the whole product."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"

RUN_CASE = """
import json, os, runpy, sys
name = json.loads(os.environ["CLAW_PARAMS"])["program"]
sys.argv = [name]
runpy.run_path(name, run_name="__main__")
"""
# The cases print their items; here they go where items are taken from.
ITEMS_THEN_CRASH = """
import json, os
records = os.open(os.environ["CLAW_RECORDS"], os.O_WRONLY | os.O_APPEND)
for n in range(1000):
    os.write(records, (json.dumps({"n": n}) + "\\n").encode())
os.abort()
"""
COPY_RECORDS = """
import os
records = os.open(os.environ["CLAW_RECORDS"], os.O_WRONLY | os.O_APPEND)
with open(os.environ["FILE"], "rb") as source:
    while block := source.read(65536):
        os.write(records, block)
"""
ENDLESS = """
import os
while True:
    os.write(1, b"y" * 99 + b"\\n")
"""
SYNTAX = "from clawspider import BaseSpider\n\nclass Broken(BaseSpider)\n    name = 'broken'\n"
IMPORT = "from nowhere_to_be_found import thing\n"


def write_registry(folder: Path) -> Path:
    """A folder that `manage.py sync_spiders` takes: spider `case`, and python spiders that cannot be loaded."""
    case = folder / "case"
    shutil.copytree(CASES / "spiders", case, ignore=shutil.ignore_patterns("evil_package", "__pycache__"))
    for name in ("logs", "items"):
        shutil.copytree(CASES / name, case / name)
    programs = {
        "run_case.py": RUN_CASE,
        "items_crash.py": ITEMS_THEN_CRASH,
        "copy_records.py": COPY_RECORDS,
        "endless.py": ENDLESS,
    }
    for name, text in programs.items():
        (case / name).write_text(text)
    spiders: list[dict[str, Any]] = [
        {
            "name": "case",
            "path": "case",
            "kind": "command",
            "entry": ["python3", "run_case.py"],
            "parameter_schema": {"type": "object", "properties": {"program": {"type": "string", "maxLength": 100}}},
        }
    ]
    for name, text in (("broken-syntax", SYNTAX), ("broken-import", IMPORT)):
        (folder / name).mkdir()
        (folder / name / "spider.py").write_text(text)
        spiders.append(
            {"name": name, "path": name, "kind": "python", "entry": "spider.py", "parameter_schema": {"type": "object"}}
        )
    missing = folder / "missing-requirement"
    missing.mkdir()
    (missing / "spider.py").write_text("print('never')\n")
    (missing / "requirements.txt").write_text("this-package-does-not-exist-anywhere-9f3a==1.0\n")
    spiders.append(
        {
            "name": "missing-requirement",
            "path": "missing-requirement",
            "kind": "python",
            "entry": "spider.py",
            "parameter_schema": {"type": "object"},
        }
    )
    for spider in spiders:
        spider |= {"version": "1", "author": "cases", "title": {"en": spider["name"]}, "description": {"en": "A case."}}
    registry = {"project": {"slug": "cases", "name": {"en": "Cases"}}, "spiders": spiders}
    (folder / "spider_registry.json").write_text(json.dumps(registry, indent=1))
    return folder
