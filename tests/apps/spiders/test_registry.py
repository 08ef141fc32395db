"""The registry: every fault with file, line and reason; what is valid is registered."""

from __future__ import annotations

import json
import os
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.spiders.archive import unpack
from apps.spiders.models import CodeArchive, Project, Spider, Version
from apps.spiders.registry import FILE_NAME, read_registry
from apps.spiders.services import sync_registry
from tests.factories import SpiderFactory

ROOT = Path(__file__).resolve().parents[3]
NAMES = (ROOT / "tests/cases/lists/names_hostile.txt").read_text().splitlines()
HARMLESS = {"null", "admin", "api", "new", "delete", "name"}


def entry(**changes: Any) -> dict[str, Any]:
    basic = {"name": "one", "path": "one", "kind": "python", "entry": "spider.py:One", "version": "1.0"}
    return {**basic, **changes}


def write(folder: Path, *spiders: Any, project: Any = None) -> Path:
    for name in ("one", "two"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "spider.py").write_text("class One: ...\n")
    registry = {"project": project or {"slug": "shop", "name": "Shop"}, "spiders": list(spiders)}
    (folder / FILE_NAME).write_text(json.dumps(registry, indent=1))
    return folder


def reasons(folder: Path) -> list[str]:
    return [f"{fault.line}: {fault.reason}" for fault in read_registry(folder).faults]


def line_of(folder: Path, text: str) -> int:
    lines = (folder / FILE_NAME).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


# -- the file as a whole ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", 1),
        (b"{\n \"project\": {\n  \"slug\": \"x\",\n }\n}", 4),
        (b"{\n\"a\": 1,\n\"a\": 2}", 3),
        (b"{\n\n\"a\": \xff}", 3),
        (b"[" * 200_000, 1),
        (b"{\"project\": NaN}", 0),
        (b"\xef\xbb\xbf{}", 1),
        (b"[]", 1),
        (b"null", 1),
        (b"{} x", 1),
        (b" " * (1024 * 1024 + 1), 0),
    ],
    ids=range(11),
)  # fmt: skip
def test_text_that_is_no_registry_is_told_with_its_line(tmp_path: Path, content: bytes, line: int) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    reading = read_registry(tmp_path)

    assert [fault.line for fault in reading.faults] == [line]
    assert str(reading.faults[0]).startswith(f"{tmp_path / FILE_NAME}:")
    assert not reading.entries


def test_a_missing_registry_is_one_fault(tmp_path: Path) -> None:
    assert len(read_registry(tmp_path).faults) == 1
    assert len(read_registry(tmp_path / "nowhere").faults) == 1


def test_a_pipe_instead_of_a_registry_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE_NAME)

    assert len(read_registry(tmp_path).faults) == 1


# -- one entry ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"kind": "perl"}, '"kind"'),
        ({"kind": ["python"]}, '"kind"'),
        ({"version": ""}, '"version"'),
        ({"version": 1.0}, '"version"'),
        ({"entry": "none.py"}, '"entry"'),
        ({"entry": "../two/spider.py"}, '"entry"'),
        ({"entry": "spider.py:1x"}, '"entry"'),
        ({"entry": ["spider.py"]}, '"entry"'),
        ({"kind": "scrapy", "entry": "one"}, '"entry"'),
        ({"kind": "command", "entry": "sh x"}, '"entry"'),
        ({"kind": "command", "entry": []}, '"entry"'),
        ({"kind": "command", "entry": ["sh", "a\0b"]}, "a\\u0000b"),
        ({"path": "three"}, '"path"'),
        ({"path": "../one"}, '"path"'),
        ({"path": "one/../../etc"}, '"path"'),
        ({"path": "/etc"}, '"path"'),
        ({"path": ""}, '"path"'),
        ({"path": "a\\b"}, '"path"'),
        ({"path": "one\0"}, '"path"'),
        ({"path": 7}, '"path"'),
        ({"colour": "red"}, '"colour"'),
        ({"title": {"zh-hans": "一"}}, '"title"'),
        ({"title": {"en": "a", "fr": "b"}}, '"title"'),
        ({"title": "a\u202eb"}, '"title"'),
        ({"author": "x" * 201}, '"author"'),
        ({"unique_key": "url"}, '"unique_key"'),
        ({"unique_key": ["url", "url"]}, '"unique_key"'),
        ({"limits": {"memory_mb": 0}}, '"memory_mb"'),
        ({"limits": {"memory_mb": "512"}}, '"memory_mb"'),
        ({"limits": {"cpus": True}}, '"cpus"'),
        ({"limits": {"disk": 1}}, '"disk"'),
        ({"exit_codes": [3]}, '"exit_codes"'),
        ({"exit_codes": {"0": {"meaning": "well"}}}, '"0"'),
        ({"exit_codes": {"256": {"meaning": "a"}}}, '"256"'),
        ({"exit_codes": {"three": {"meaning": "a"}}}, '"three"'),
        ({"exit_codes": {"137": {"meaning": "a"}}}, '"137"'),
        ({"exit_codes": {"3": "nothing new"}}, '"3"'),
        ({"exit_codes": {"3": {"success": True}}}, '"3"'),
        ({"exit_codes": {"3": {"meaning": {"fr": "rien"}}}}, '"meaning"'),
        ({"exit_codes": {"3": {"meaning": "a", "success": 1}}}, '"success"'),
        ({"parameter_schema": "none"}, '"parameter_schema"'),
        ({"parameter_schema": {"type": "object", "properties": {"a": {"type": "strin"}}}}, '"strin"'),
        ({"parameter_schema": {"type": "object", "properties": {"a b": {}}}}, '"a b"'),
        ({"parameter_schema": None}, '"parameter_schema"'),
        ({"item_schema": {"type": 5}}, '"type": 5'),
    ],
    ids=range(45),
)
def test_a_faulty_entry_is_told_with_its_line(tmp_path: Path, changes: dict[str, Any], at: str) -> None:
    folder = write(tmp_path, entry(**changes), entry(name="two", path="two"))
    reading = read_registry(folder)

    assert [fault.line for fault in reading.faults] == [line_of(folder, at)]
    assert [found.name for found in reading.entries] == ["two"]


def test_all_faults_of_an_entry_are_told_at_once(tmp_path: Path) -> None:
    folder = write(tmp_path, entry(version="", kind="x", unique_key=5))

    assert len(reasons(folder)) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_refused(tmp_path: Path, name: str) -> None:
    reading = read_registry(write(tmp_path, entry(name=name)))

    assert [found.name for found in reading.entries] == ([name] if name in HARMLESS else [])
    assert all(str(fault).isprintable() for fault in reading.faults)


def test_a_name_with_a_line_break_at_its_end_is_refused(tmp_path: Path) -> None:
    assert reasons(write(tmp_path, entry(name="one\n")))


def test_the_second_spider_of_a_name_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, entry(), entry(path="two"))
    reading = read_registry(folder)

    assert [found.folder.name for found in reading.entries] == ["one"]
    assert len(reading.faults) == 1


def test_a_bad_project_stops_all(tmp_path: Path) -> None:
    assert not read_registry(write(tmp_path, entry(), project={"slug": "../x", "name": "X"})).entries
    assert not read_registry(write(tmp_path, entry(), project={"slug": "x"})).entries


def test_a_folder_that_is_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, entry(path="three"))
    (folder / "three").symlink_to("/etc")

    assert "leads out" in " ".join(reasons(folder))


def test_requirements_that_are_no_text_are_told_under_their_own_name(tmp_path: Path) -> None:
    folder = write(tmp_path, entry())
    (folder / "one" / "requirements.txt").write_bytes(b"requests\n\xff\xfe\n")
    faults = read_registry(folder).faults

    assert [str(fault.file.name) for fault in faults] == ["requirements.txt"]
    assert faults[0].line == 2


def test_the_samples_of_the_panel_are_valid() -> None:
    reading = read_registry(ROOT / "spider_repo")

    assert reading.faults == []
    assert [found.name for found in reading.entries] == ["quotes", "books", "prices", "slow"]


# -- registering --------------------------------------------------------------------------------------------------

pytestmark = pytest.mark.django_db


def test_valid_spiders_are_registered_although_others_are_faulty(tmp_path: Path, now: datetime) -> None:
    report = sync_registry(folder=write(tmp_path, entry(kind="x"), entry(name="two", path="two")), now=now)

    assert report.created == ["two"]
    assert len(report.faults) == 1
    spider = Spider.objects.get()
    assert spider.project.slug == "shop"
    assert spider.current_version is not None
    assert spider.current_version.command == ["python3", "-m", "clawspider", "run", "spider.py:One"]


def test_registering_twice_changes_nothing(tmp_path: Path, now: datetime) -> None:
    folder = write(tmp_path, entry())
    sync_registry(folder=folder, now=now)
    before = Spider.objects.get().updated_at
    report = sync_registry(folder=folder, now=now)

    assert report.unchanged == ["one"]
    assert Version.objects.count() == CodeArchive.objects.count() == Project.objects.count() == 1
    assert Spider.objects.get().updated_at == before


@pytest.mark.parametrize("change", ["code", "requirements", "schema", "version"])
def test_changed_content_makes_a_new_current_version(tmp_path: Path, now: datetime, change: str) -> None:
    folder = write(tmp_path, entry())
    sync_registry(folder=folder, now=now)
    if change == "code":
        (folder / "one" / "spider.py").write_text("class One: x = 1\n")
    elif change == "requirements":
        (folder / "one" / "requirements.txt").write_text("requests\n")
    elif change == "schema":
        write(folder, entry(parameter_schema={"type": "object", "properties": {"a": {}}}))
    else:
        write(folder, entry(version="1.1"))
    report = sync_registry(folder=folder, now=now)

    assert report.updated == ["one"]
    assert Version.objects.count() == 2
    assert Spider.objects.get().current_version == Version.objects.latest("pk")


def test_what_exit_codes_mean_is_kept_with_the_version(tmp_path: Path, now: datetime) -> None:
    folder = write(tmp_path, entry())
    sync_registry(folder=folder, now=now)
    write(folder, entry(exit_codes={"3": {"success": True, "meaning": "nothing new"}}))
    report = sync_registry(folder=folder, now=now)

    assert report.updated == ["one"]
    current = Spider.objects.get().current_version
    assert current is not None
    assert current.exit_codes == {"3": {"success": True, "meaning": {"en": "nothing new"}}}


def test_going_back_to_earlier_code_brings_the_earlier_version_back(tmp_path: Path, now: datetime) -> None:
    folder = write(tmp_path, entry())
    sync_registry(folder=folder, now=now)
    first = Version.objects.get()
    (folder / "one" / "spider.py").write_text("class One: x = 1\n")
    sync_registry(folder=folder, now=now)
    write(folder, entry())
    sync_registry(folder=folder, now=now)

    assert Spider.objects.get().current_version == first
    assert Version.objects.count() == 2


def test_a_new_title_makes_no_new_version(tmp_path: Path, now: datetime) -> None:
    sync_registry(folder=write(tmp_path, entry()), now=now)
    report = sync_registry(folder=write(tmp_path, entry(title={"en": "One", "zh-hans": "一"})), now=now)

    assert report.updated == ["one"]
    assert Version.objects.count() == 1
    assert Spider.objects.get().titles == {"en": "One", "zh-hans": "一"}


def test_a_name_of_another_project_is_not_taken_over(tmp_path: Path, now: datetime) -> None:
    other = SpiderFactory(name="one")
    report = sync_registry(folder=write(tmp_path, entry()), now=now)

    assert "another project" in report.faults[0].reason
    assert Spider.objects.get() == other


def test_a_link_inside_a_spider_that_leads_out_is_refused(tmp_path: Path, now: datetime) -> None:
    folder = write(tmp_path, entry(), entry(name="two", path="two"))
    (folder / "one" / "passwd").symlink_to("/etc/passwd")
    report = sync_registry(folder=folder, now=now)

    assert report.created == ["two"]
    assert [str(fault.file) for fault in report.faults] == [str(folder / "one" / "passwd")]


def test_the_order_of_parameters_survives_the_database(tmp_path: Path, now: datetime) -> None:
    properties = {"zebra_is_first": {}, "b": {}, "aa": {}}
    folder = write(tmp_path, entry(parameter_schema={"type": "object", "properties": properties}))
    sync_registry(folder=folder, now=now)

    assert Version.objects.get().parameter_schema["x-order"] == list(properties)


def test_registered_code_can_be_unpacked(tmp_path: Path, now: datetime) -> None:
    sync_registry(folder=write(tmp_path, entry()), now=now)
    stored = CodeArchive.objects.get()
    code = unpack(bytes(stored.content), stored.digest, tmp_path / "home")

    assert (code / "spider.py").read_text() == "class One: ...\n"


def test_the_command_prints_each_fault_on_a_line_and_ends_with_1(tmp_path: Path) -> None:
    folder = write(tmp_path, entry(kind="x"), entry(name="two", path="two", version=""))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("sync_spiders", str(folder), stdout=out)

    lines = out.getvalue().splitlines()
    assert ended.value.code == 1
    assert len(lines) == 3
    assert all(line.startswith(f"{folder / FILE_NAME}:") for line in lines[:2])
    assert "2 faults" in lines[2]


def test_the_command_is_silent_about_valid_spiders_but_for_the_summary(tmp_path: Path) -> None:
    out = StringIO()
    call_command("sync_spiders", str(write(tmp_path, entry())), stdout=out)

    assert out.getvalue().splitlines() == [f"{tmp_path}: 1 new, 0 changed, 0 unchanged, 0 faults"]
