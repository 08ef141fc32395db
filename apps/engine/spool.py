"""Append-only spool files of an attempt: made by the agent, written by the spider, read by byte offset."""

from __future__ import annotations

import ctypes
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

OUT = "out"
RECORDS = "records"

LOG_LINE_BYTES = 64 * 1024
RECORD_LINE_BYTES = 1024 * 1024
CUT_MARK = " …[line cut at 64 KiB]".encode()
TAIL_BYTES = 4096

_PAGE = 4096
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2
_FALLOCATE_BITS = 64
_UTF8_CONTINUATION = 0xC0, 0x80

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class LineRule:
    """How long a line may be, and what stands where the rest of a longer one was dropped."""

    max_bytes: int
    mark: bytes


LOG_RULE = LineRule(LOG_LINE_BYTES, CUT_MARK)
# One byte over the limit is kept, so that the record gate sees that the line is too long and refuses it once.
RECORD_RULE = LineRule(RECORD_LINE_BYTES + 64, b"")


@dataclass(frozen=True, slots=True)
class Window:
    """A step through a spool. Store `next_offset` and `cut` in the transaction that stores `data`.

    `data` holds whole lines, each ending in a newline. `tail` is the end of the line still being written: for the
    live view only, it comes again as part of a later `data`. After `shrunk` the log is damaged: what lay between the
    old offset and `next_offset` is unknown.
    """

    data: bytes
    next_offset: int
    size: int
    cut: bool = False
    shrunk: bool = False
    tail: bytes = b""

    @property
    def at_end(self) -> bool:
        return self.next_offset >= self.size


def create_spools(run_dir: Path, uid: int, gid: int) -> None:
    """Make both files for the run's uid; files that are there already are left as they are (adoption)."""
    run_dir.mkdir(parents=True, exist_ok=True)
    for name in (OUT, RECORDS):
        with suppress(FileExistsError):
            descriptor = os.open(run_dir / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            try:
                if os.geteuid() == 0:
                    os.fchown(descriptor, uid, gid)
            finally:
                os.close(descriptor)


def spool_size(path: Path) -> int:
    """0 for a file that is gone."""
    try:
        return path.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def read_window(
    path: Path, offset: int, limit: int, *, cut: bool = False, final: bool = False, rule: LineRule = LOG_RULE
) -> Window:
    """Read whole lines from `offset`. `cut`: the bytes up to the next newline belong to a line already cut.

    With `final` (nobody writes any more) a last line without newline is a line too; call until `at_end`.
    """
    try:
        size, chunk = _read(path, offset, max(limit, rule.max_bytes + 1))
    except FileNotFoundError:
        return Window(b"", 0, 0, shrunk=offset > 0)
    if size < offset:
        return Window(b"", size, size, shrunk=True)
    whole = len(chunk)
    full = whole >= max(limit, rule.max_bytes + 1)
    last = final and offset + whole >= size

    skipped = 0
    if cut:
        newline = chunk.find(b"\n")
        if newline < 0:
            return Window(b"", offset + whole, size, cut=not last, tail=chunk[-TAIL_BYTES:])
        skipped = newline + 1
        chunk = chunk[skipped:]

    end = chunk.rfind(b"\n") + 1
    if end == 0 and full and skipped == 0 and not last:
        return Window(_shorten(chunk, rule), offset + whole, size, cut=True, tail=chunk[-TAIL_BYTES:])
    lines, rest = chunk[:end], chunk[end:]
    if last and rest:
        lines, rest = chunk + b"\n", b""
        end = len(chunk)
    return Window(_cut_long_lines(lines, rule), offset + skipped + end, size, tail=rest[-TAIL_BYTES:])


def _read(path: Path, offset: int, limit: int) -> tuple[int, bytes]:
    # The spider may own the directory entry (process executor without root): never follow a link or block on a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(path)
        if found.st_size <= offset:
            return found.st_size, b""
        data = os.pread(descriptor, limit, offset)
        # The file may have grown since fstat: what was read counts.
        return max(found.st_size, offset + len(data)), data
    finally:
        os.close(descriptor)


def _shorten(line: bytes, rule: LineRule) -> bytes:
    """The first bytes of a line, never half a UTF-8 character, with the mark and a newline."""
    end = rule.max_bytes
    mask, continuation = _UTF8_CONTINUATION
    for _ in range(3):
        if line[end] & mask != continuation:
            break
        end -= 1
    return line[:end] + rule.mark + b"\n"


def _cut_long_lines(data: bytes, rule: LineRule) -> bytes:
    if len(data) <= rule.max_bytes + 1:
        return data
    parts: list[bytes] = []
    kept_from = position = 0
    while position < len(data):
        # The last newline within reach shows that every line up to it is short enough.
        newline = data.rfind(b"\n", position, position + rule.max_bytes + 1)
        if newline >= 0:
            position = newline + 1
            continue
        newline = data.find(b"\n", position + rule.max_bytes)
        parts += data[kept_from:position], _shorten(data[position:newline], rule)
        kept_from = position = newline + 1
    if not parts:
        return data
    parts.append(data[kept_from:])
    return b"".join(parts)


def punch(path: Path, upto: int) -> bool:
    """Give the disk blocks of consumed bytes back; offsets and size stay. Best effort: False where it cannot be."""
    length = upto // _PAGE * _PAGE
    if length <= 0 or not hasattr(_libc, "fallocate") or ctypes.sizeof(ctypes.c_long) * 8 < _FALLOCATE_BITS:
        return False
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flags = _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE
        done: int = _libc.fallocate(descriptor, flags, ctypes.c_long(0), ctypes.c_long(length))
        return done == 0
    finally:
        os.close(descriptor)
