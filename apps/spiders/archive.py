"""A version's files as one archive: the same files always give the same digest, and nothing in it leads outside."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path

import zstandard
from django.utils.translation import gettext as _

from apps.core.errors import Invalid

MAX_FILES = 20_000
MAX_BYTES = 100 * 1024 * 1024
MAX_PATH_BYTES = 240
# Room for the headers of the largest archive we make.
_MAX_TAR_BYTES = MAX_BYTES + MAX_FILES * 2048 + tarfile.RECORDSIZE
_BLOCK = 256 * 1024
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
# Made by tools, not by people; none of it belongs into a run.
LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".scrapy",
     ".idea", ".vscode", ".DS_Store", "node_modules"}
)  # fmt: skip


class BadFolder(Invalid):
    """A folder that cannot be packed; `path` is the file at fault, relative to it."""

    code = "bad_spider_folder"

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


class BadArchive(Invalid):
    code = "bad_archive"


def pack(folder: Path, *, leave_out: Collection[str] = ()) -> tuple[str, bytes]:
    """Digest and packed content of all files below `folder`. `leave_out` names files at its top."""
    root = folder.resolve(strict=True)
    buffer, total, count = io.BytesIO(), 0, 0
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(_files(root, leave_out)):
            count += 1
            if count > MAX_FILES:
                raise BadFolder(".", _("more than %(limit)d files") % {"limit": MAX_FILES})
            content, executable = _read(path, name, MAX_BYTES - total)
            total += len(content)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if executable else 0o644
            tar.addfile(entry, io.BytesIO(content))
    if not count:
        raise BadFolder(".", _("there is no file in it"))
    tarred = buffer.getvalue()
    return hashlib.sha256(tarred).hexdigest(), zstandard.ZstdCompressor(level=6).compress(tarred)


def _files(root: Path, leave_out: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Name and path of each file. A link to a file inside stands for that file; other links are refused."""
    todo = [root]
    seen = 0
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                name = path.relative_to(root).as_posix()
                if entry.name in LEFT_OUT or entry.name.endswith(".pyc") or name in leave_out:
                    continue
                seen += 1
                if seen > 2 * MAX_FILES:
                    raise BadFolder(".", _("more than %(limit)d files") % {"limit": MAX_FILES})
                _check_name(name)
                if entry.is_symlink():
                    yield name, _link_target(root, path, name)
                elif entry.is_dir(follow_symlinks=False):
                    todo.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield name, path
                else:
                    raise BadFolder(name, _("this is neither a file nor a folder"))


def _link_target(root: Path, path: Path, name: str) -> Path:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise BadFolder(name, _("this link leads nowhere")) from error
    if not target.is_relative_to(root):
        raise BadFolder(name, _("this link leads out of the folder"))
    if not target.is_file():
        raise BadFolder(name, _("this is a link to something that is not a file"))
    return target


def _check_name(name: str) -> None:
    odd = any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for letter in name)
    if odd or "\\" in name:
        raise BadFolder(ascii(name), _("the name holds a character that is not allowed"))
    if len(name.encode()) > MAX_PATH_BYTES:
        raise BadFolder(name[:80] + "…", _("the path is longer than %(limit)d bytes") % {"limit": MAX_PATH_BYTES})


def _read(path: Path, name: str, left: int) -> tuple[bytes, bool]:
    try:
        # A file may be swapped for a link or a pipe between listing and opening.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadFolder(name, _("it cannot be read: %(why)s") % {"why": error.strerror}) from error
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise BadFolder(name, _("this is neither a file nor a folder"))
        content = file.read(left + 1) if status.st_size <= left else b""
    if status.st_size > left or len(content) > left:
        raise BadFolder(name, _("the files have more than %(limit)d MiB together") % {"limit": MAX_BYTES // 2**20})
    return content, bool(status.st_mode & 0o111)


def unpack(content: bytes, digest: str, home: Path) -> Path:
    """The folder `home/code/<digest>` with the files, made when missing. Any number of processes may do it at once."""
    if not _DIGEST.match(digest):
        raise BadArchive(_("This is not the digest of an archive."))
    shelf = home / "code"
    final = shelf / digest
    if final.is_dir():
        return final
    shelf.mkdir(parents=True, exist_ok=True)
    shelf.chmod(0o755)
    draft = Path(tempfile.mkdtemp(prefix=f".{digest[:8]}-", dir=shelf))
    try:
        _fill(draft, _opened(content, digest))
        draft.chmod(0o755)
        try:
            draft.rename(final)
        except OSError:
            # Somebody was faster: a folder that is not empty cannot be replaced.
            if not final.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return final


def _opened(content: bytes, digest: str) -> bytes:
    out = io.BytesIO()
    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as reader:
            while block := reader.read(_BLOCK):
                out.write(block)
                if out.tell() > _MAX_TAR_BYTES:
                    raise BadArchive(_("The archive is larger than it may be."))
    except zstandard.ZstdError as error:
        raise BadArchive(_("The archive is damaged.")) from error
    tarred = out.getvalue()
    if hashlib.sha256(tarred).hexdigest() != digest:
        raise BadArchive(_("The archive is not the one that was registered."))
    return tarred


def _fill(draft: Path, tarred: bytes) -> None:
    """Our own loop: tarfile's extractors follow links, keep owners, and differ between versions of Python."""
    total = count = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(tarred), mode="r:") as tar:
            for entry in tar:
                count, total = count + 1, total + entry.size
                if count > MAX_FILES or total > MAX_BYTES:
                    raise BadArchive(_("The archive is larger than it may be."))
                source = tar.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                if source is None:
                    raise BadArchive(_("The archive holds something that is not a file."))
                _write(draft / _inside(entry.name), source.read(), 0o755 if entry.mode & 0o111 else 0o644)
    except (tarfile.TarError, FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise BadArchive(_("The archive is damaged.")) from error


def _inside(name: str) -> str:
    if name.startswith("/") or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise BadArchive(_("The archive holds a path that leads outside."))
    try:
        _check_name(name)
    except BadFolder as error:
        raise BadArchive(_("The archive holds a path that leads outside.")) from error
    return name


def _write(path: Path, content: bytes, mode: int) -> None:
    for folder in (*reversed(path.parents), path)[:-1]:
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        # The folder's name promises its content, also after the power fails.
        os.fsync(file.fileno())
