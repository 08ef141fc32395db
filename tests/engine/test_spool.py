"""Any bytes, cut in any windows, come out as the same lines exactly once."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.spool import (
    CUT_MARK,
    LOG_LINE_BYTES,
    RECORD_RULE,
    LineRule,
    create_spools,
    punch,
    read_window,
    spool_size,
)

SMALL = LineRule(8, b"~")


def expected_lines(data: bytes, rule: LineRule) -> list[bytes]:
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    out = []
    for line in lines:
        if len(line) > rule.max_bytes:
            end = rule.max_bytes
            for _ in range(3):
                if line[end] & 0xC0 == 0x80:
                    end -= 1
                else:
                    break
            line = line[:end] + rule.mark  # noqa: PLW2901
        out.append(line)
    return out


def drain(path: Path, limit: int, rule: LineRule, offset: int = 0, cut: bool = False, final: bool = True):
    lines: list[bytes] = []
    for _ in range(100_000):
        window = read_window(path, offset, limit, cut=cut, final=final, rule=rule)
        assert not window.shrunk
        assert window.data == b"" or window.data.endswith(b"\n")
        lines += window.data.split(b"\n")[:-1]
        if window.next_offset == offset:
            break
        offset, cut = window.next_offset, window.cut
        if final and window.at_end:
            break
    return lines, offset, cut


@pytest.fixture(scope="module")
def spool(tmp_path_factory):
    return tmp_path_factory.mktemp("spool") / "out"


text = st.lists(st.sampled_from([b"a", b"\n", b"bc", "é".encode(), b"\xff", b"\x80\x80\x80\x80", b"\r", b"x" * 9]))


@given(pieces=text, limit=st.integers(1, 20), writes=st.lists(st.integers(1, 12), max_size=20))
@settings(max_examples=300, deadline=None)
def test_any_stream_in_any_windows_gives_the_same_lines_once(spool, pieces, limit, writes):
    data = b"".join(pieces)
    spool.write_bytes(b"")
    lines: list[bytes] = []
    offset, cut, written = 0, False, 0
    for step in writes:  # the reader follows while the spider writes
        with spool.open("ab") as file:
            file.write(data[written : written + step])
        written += step
        window = read_window(spool, offset, limit, cut=cut, rule=SMALL)
        lines += window.data.split(b"\n")[:-1]
        offset, cut = window.next_offset, window.cut
    with spool.open("ab") as file:
        file.write(data[written:])
    more, offset, _ = drain(spool, limit, SMALL, offset, cut)
    assert lines + more == expected_lines(data, SMALL)
    assert offset == len(data)


def test_a_line_of_10_mb_is_cut_with_a_mark_and_the_next_is_a_line_of_its_own(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"y" * 10_000_000 + b"\nshort line after\n")
    lines, offset, _ = drain(path, 256 * 1024, LineRule(LOG_LINE_BYTES, CUT_MARK))
    assert lines == [b"y" * LOG_LINE_BYTES + CUT_MARK, b"short line after"]
    assert offset == path.stat().st_size


def test_a_character_is_not_cut_in_half(tmp_path):
    path = tmp_path / "out"
    path.write_bytes("中".encode() * 30_000 + b"\n")
    lines, *_ = drain(path, 256 * 1024, LineRule(LOG_LINE_BYTES, CUT_MARK))
    lines[0].decode()
    assert len(lines[0]) == LOG_LINE_BYTES // 3 * 3 + len(CUT_MARK)


def test_a_record_over_the_limit_stays_recognisably_too_long(tmp_path):
    path = tmp_path / "records"
    path.write_bytes(b'{"a":"' + b"x" * 5_000_000 + b'"}\n{"b":1}\n')
    lines, *_ = drain(path, 1024 * 1024, RECORD_RULE)
    assert [len(line) for line in lines] == [RECORD_RULE.max_bytes, 7]


def test_the_line_being_written_is_shown_but_not_consumed(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"done\n\rprogress 3/300")
    window = read_window(path, 0, 4096)
    assert (window.data, window.tail, window.next_offset) == (b"done\n", b"\rprogress 3/300", 5)
    assert not window.at_end


def test_the_last_line_without_newline_is_a_line_at_the_end(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"one\nno newline at end")
    window = read_window(path, 0, 4096, final=True)
    assert window.data == b"one\nno newline at end\n"
    assert window.at_end


def test_a_shrunk_spool_is_reported_once_and_reading_goes_on_from_its_new_end(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"x" * 99 + b"\n")
    offset = read_window(path, 0, 4096).next_offset
    os.truncate(path, 10)
    window = read_window(path, offset, 4096)
    assert (window.shrunk, window.next_offset, window.data) == (True, 10, b"")
    with path.open("ab") as file:
        file.write(b"after\n")
    window = read_window(path, window.next_offset, 4096)
    assert (window.shrunk, window.data) == (False, b"after\n")


def test_a_missing_spool_is_damage_not_an_error(tmp_path):
    assert read_window(tmp_path / "out", 100, 4096).shrunk
    assert not read_window(tmp_path / "out", 0, 4096).shrunk
    assert spool_size(tmp_path / "out") == 0


@pytest.mark.timeout(10)
def test_a_link_or_a_pipe_in_place_of_a_spool_is_not_read(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic"):
        read_window(tmp_path / "link", 0, 4096)
    assert read_window(tmp_path / "pipe", 0, 4096).data == b""


def test_spools_are_made_once_and_kept(tmp_path):
    create_spools(tmp_path / "1-1", os.getuid(), os.getgid())
    (tmp_path / "1-1" / "out").write_bytes(b"kept\n")
    create_spools(tmp_path / "1-1", os.getuid(), os.getgid())
    assert (tmp_path / "1-1" / "out").read_bytes() == b"kept\n"
    assert (tmp_path / "1-1" / "records").stat().st_mode & 0o777 == 0o600


def test_consumed_bytes_give_their_blocks_back(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(random.Random(1).randbytes(1 << 20) + b"\nend\n")  # noqa: S311
    os.sync()
    before = path.stat().st_blocks
    if not punch(path, 1 << 20):
        pytest.skip("this file system cannot punch holes")
    after = path.stat()
    assert after.st_blocks < before // 4
    assert after.st_size == (1 << 20) + 5
    assert read_window(path, (1 << 20) + 1, 4096).data == b"end\n"
