"""Counters of both versions of control groups, as the kernel writes them."""

from pathlib import Path

import pytest

from apps.engine.executors.docker import usage
from apps.engine.executors.docker.usage import Groups, read_groups
from apps.engine.types import Sample


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "_network", lambda _: (10, 20))


def test_version_2_is_one_tree(tmp_path: Path):
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n")
    (tmp_path / "memory.current").write_text("50000000\n")
    (tmp_path / "memory.max").write_text("268435456\n")
    (tmp_path / "memory.stat").write_text("anon 1\nfile 2\ninactive_file 10000000\n")
    (tmp_path / "pids.current").write_text("3\n")
    groups = Groups(1, tmp_path, tmp_path, tmp_path, 2)
    assert read_groups(groups) == Sample(2.5, 40_000_000, 268_435_456, 3, 10, 20)
    (tmp_path / "memory.max").write_text("max\n")
    sample = read_groups(groups)
    assert sample is not None
    assert sample.memory_limit_bytes == 0


def test_version_1_has_a_tree_for_each_controller(tmp_path: Path):
    (tmp_path / "cpuacct.usage").write_text("2500000000\n")
    (tmp_path / "memory.usage_in_bytes").write_text("50000000\n")
    (tmp_path / "memory.limit_in_bytes").write_text("268435456\n")
    (tmp_path / "memory.stat").write_text("cache 5\ntotal_inactive_file 10000000\n")
    (tmp_path / "pids.current").write_text("3\n")
    groups = Groups(1, tmp_path, tmp_path, tmp_path, 1)
    assert read_groups(groups) == Sample(2.5, 40_000_000, 268_435_456, 3, 10, 20)


def test_a_container_that_ended_meanwhile_has_no_use(tmp_path: Path):
    assert read_groups(Groups(1, tmp_path, tmp_path, tmp_path, 1)) is None
    assert read_groups(Groups(1, tmp_path, tmp_path, tmp_path, 2)) is None


def test_a_process_of_ours_is_not_taken_for_the_container():
    assert usage.find_groups(1, "0" * 64) is None
    assert usage.find_groups(2**22 + 1, "0" * 64) is None
