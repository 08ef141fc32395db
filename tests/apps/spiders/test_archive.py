"""Archives of code: the same for the same files, and safe to unpack."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from apps.spiders import archive
from apps.spiders.archive import BadArchive, BadFolder, pack, unpack


def folder(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def sealed(*entries: tuple[str, bytes, bytes, str]) -> tuple[bytes, str]:
    """An archive with the given names, types, contents and link targets, and its true digest."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, content, link in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), link
            tar.addfile(entry, io.BytesIO(content))
    return zstandard.compress(buffer.getvalue()), hashlib.sha256(buffer.getvalue()).hexdigest()


def test_the_same_files_give_the_same_archive(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", **{"spider.py": "x", "lib__a.py": "a", "lib__b.py": "b"})
    two = folder(tmp_path / "two", **{"lib__b.py": "b", "lib__a.py": "a", "spider.py": "x"})
    os.utime(two / "spider.py", (1, 1))
    (two / "spider.py").chmod(0o600)

    assert pack(one) == pack(two)


def test_files_come_back_readable_for_everyone_and_programs_stay_programs(tmp_path: Path) -> None:
    source = folder(tmp_path / "one", **{"run.sh": "#!/bin/sh", "lib__deep__a.py": "ä"})
    (source / "run.sh").chmod(0o4700)
    (source / "lib__deep__a.py".replace("__", "/")).chmod(0o600)
    old = os.umask(0o077)
    try:
        digest, content = pack(source)
        code = unpack(content, digest, tmp_path / "home")
    finally:
        os.umask(old)

    assert code == tmp_path / "home" / "code" / digest
    assert (code / "lib/deep/a.py").read_text() == "ä"
    modes = {path.relative_to(code).as_posix(): path.stat().st_mode & 0o7777 for path in (code, *code.rglob("*"))}
    assert modes == {".": 0o755, "run.sh": 0o755, "lib": 0o755, "lib/deep": 0o755, "lib/deep/a.py": 0o644}


def test_what_tools_leave_behind_is_not_packed(tmp_path: Path) -> None:
    source = folder(tmp_path / "one", **{"a.py": "a"})
    plain = pack(source)
    folder(source, **{".git__config": "x", "__pycache____a.pyc": "x", "b.pyc": "x"})
    (source / "__pycache__").mkdir(exist_ok=True)

    assert pack(source) == plain


def test_a_link_to_a_file_inside_becomes_that_file(tmp_path: Path) -> None:
    source = folder(tmp_path / "one", **{"a.py": "a"})
    (source / "b.py").symlink_to("a.py")
    digest, content = pack(source)

    assert (unpack(content, digest, tmp_path) / "b.py").read_text() == "a"
    assert not (unpack(content, digest, tmp_path) / "b.py").is_symlink()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "nowhere", "b", "lib"])
def test_other_links_are_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").write_text("secret")
    source = folder(tmp_path / "one", **{"a.py": "a", "lib__x.py": "x"})
    (source / "b").symlink_to(target)

    with pytest.raises(BadFolder) as refused:
        pack(source)
    assert refused.value.path == "b"


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    source = folder(tmp_path / "one", **{"a.py": "a"})
    os.mkfifo(source / "pipe")

    with pytest.raises(BadFolder):
        pack(source)


@pytest.mark.parametrize(
    "name", ["a\nb", "\u202eyp.exe", "a\\b", "x" * 241, b"\xff\xfe".decode("utf-8", "surrogateescape")]
)
def test_a_hostile_file_name_is_refused_with_a_printable_sentence(tmp_path: Path, name: str) -> None:
    source = folder(tmp_path / "one", **{"a.py": "a"})
    path = source / name if len(name) < 200 else source / name[:120] / name[:120]
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")

    with pytest.raises(BadFolder) as refused:
        pack(source)
    assert str(refused.value).isprintable()


def test_too_much_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder(tmp_path / "one", a="a")
    with (source / "big").open("wb") as big:
        big.truncate(archive.MAX_BYTES + 1)
    with pytest.raises(BadFolder):
        pack(source)
    (source / "big").unlink()
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    folder(source, b="", c="")
    pack(source)
    folder(source, d="")
    with pytest.raises(BadFolder):
        pack(source)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFolder):
        pack(tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        ("../evil", tarfile.REGTYPE, b"x", ""),
        ("a/../../evil", tarfile.REGTYPE, b"x", ""),
        ("/tmp/evil_abs", tarfile.REGTYPE, b"x", ""),
        ("./a", tarfile.REGTYPE, b"x", ""),
        ("a\\b", tarfile.REGTYPE, b"x", ""),
        ("l", tarfile.SYMTYPE, b"", "/etc"),
        ("h", tarfile.LNKTYPE, b"", "/etc/passwd"),
        ("dev", tarfile.CHRTYPE, b"", ""),
        ("fifo", tarfile.FIFOTYPE, b"", ""),
        ("good.py", tarfile.REGTYPE, b"second", ""),
        ("good.py/x", tarfile.REGTYPE, b"x", ""),
    ],
    ids=lambda entry: entry[0],
)
def test_a_hostile_archive_leaves_nothing_behind(tmp_path: Path, entry: tuple[str, bytes, bytes, str]) -> None:
    content, digest = sealed(("good.py", tarfile.REGTYPE, b"x", ""), entry)
    home = tmp_path / "home"

    with pytest.raises(BadArchive):
        unpack(content, digest, home)
    assert list((home / "code").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    assert not Path("/tmp/evil_abs").exists()


def test_an_archive_must_be_what_its_digest_says(tmp_path: Path) -> None:
    content, digest = sealed(("a.py", tarfile.REGTYPE, b"x", ""))
    other = sealed(("a.py", tarfile.REGTYPE, b"y", ""))[0]

    for wrong in (other, b"", b"not zstd at all", content[:-3]):
        with pytest.raises(BadArchive):
            unpack(wrong, digest, tmp_path)
    for name in ("../x", "", "A" * 64, digest + "\n"):
        with pytest.raises(BadArchive):
            unpack(content, name, tmp_path)


def test_a_bomb_is_stopped_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_TAR_BYTES", 10 * 2**20)
    bomb = zstandard.compress(b"\0" * (64 * 2**20))

    with pytest.raises(BadArchive):
        unpack(bomb, "0" * 64, tmp_path)


def test_many_may_unpack_at_once(tmp_path: Path) -> None:
    source = folder(tmp_path / "one", **{f"f{n}.py": str(n) for n in range(30)})
    digest, content = pack(source)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: unpack(content, digest, tmp_path / "home"), range(16)))

    assert len(found) == 1
    assert len(list(found.pop().iterdir())) == 30
    assert [path.name for path in (tmp_path / "home" / "code").iterdir()] == [digest]
