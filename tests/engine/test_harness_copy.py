"""Runs get a copy of the harness that never changes under them."""

import threading
from pathlib import Path

from apps.engine.harness_copy import install_harness


def test_the_copy_is_named_by_its_content_and_made_once(tmp_path: Path):
    source = tmp_path / "source"
    (source / "clawspider").mkdir(parents=True)
    (source / "entry.sh").write_text("#!/bin/sh\n")
    (source / "clawspider" / "__init__.py").write_text("x = 1\n")
    (source / "notes.txt").write_text("not for runs")
    first = install_harness(tmp_path / "home", source)
    assert first == install_harness(tmp_path / "home", source)
    assert (first / "clawspider" / "__init__.py").read_text() == "x = 1\n"
    assert (first / "entry.sh").stat().st_mode & 0o777 == 0o755
    assert not (first / "notes.txt").exists()
    (source / "clawspider" / "__init__.py").write_text("x = 2\n")
    second = install_harness(tmp_path / "home", source)
    assert second != first
    assert (first / "clawspider" / "__init__.py").read_text() == "x = 1\n"
    assert list((tmp_path / "home" / "harness").glob(".draft-*")) == []


def test_two_workers_at_once_make_one_copy(tmp_path: Path):
    found: list[Path] = []
    workers = [threading.Thread(target=lambda: found.append(install_harness(tmp_path))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(found)) == 1
    assert len(list((tmp_path / "harness").iterdir())) == 1
