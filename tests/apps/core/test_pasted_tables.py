"""Tables as people paste them and as spreadsheets save them."""

from __future__ import annotations

import codecs
import random

import pytest

from apps.core.pasted_tables import BadTable, Table, decoded, read_table

KNOWN = ("keyword", "pages", "url")


def read(text: str, column: str = "") -> Table:
    return read_table(text, known=KNOWN, column=column)


@pytest.mark.parametrize(
    "content",
    [
        "keyword\n海\n".encode(),
        codecs.BOM_UTF8 + "keyword\n海\n".encode(),
        codecs.BOM_UTF16_LE + "keyword\n海\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "keyword\n海\n".encode("utf-16-be"),
        "keyword\n海\n".encode("utf-16-le"),
        "keyword\n海\n".encode("utf-16-be"),
        "keyword\n海\n".encode("gb18030"),
        "keyword\n海\n".encode("gbk"),
    ],
)
def test_a_file_is_read_as_spreadsheets_save_it(content: bytes) -> None:
    assert read(decoded(content)).rows == (("海",),)


def test_a_file_in_another_encoding_is_refused_in_words() -> None:
    with pytest.raises(BadTable, match="Save it as UTF-8"):
        decoded("keyword,x\ncafé,1\n".encode("cp1252"))


@pytest.mark.parametrize("text", ["keyword\tpages\na\t1\n", "keyword,pages\na,1\n", "keyword;pages\r\na;1\r\n"])
def test_the_delimiter_is_told_by_the_first_line(text: str) -> None:
    table = read(text)

    assert (table.columns, table.rows) == (("keyword", "pages"), (("a", "1"),))


def test_a_spreadsheet_may_name_its_delimiter() -> None:
    table = read("sep=;\nkeyword;pages\na,b;1\n")

    assert (table.rows, table.lines) == ((("a,b", "1"),), (3,))


def test_quotes_keep_delimiters_line_ends_and_quotes() -> None:
    table = read('keyword,pages\n"a,b\r\nsays ""hi""",1\nlast,2')

    assert table.rows == (('a,b\r\nsays "hi"', "1"), ("last", "2"))
    assert table.lines == (2, 4)


def test_empty_lines_are_left_out() -> None:
    assert read("\n\nkeyword,pages\n\n,\na,1\n  ,\t\n\n").rows == (("a", "1"),)


def test_a_list_of_values_needs_no_name_of_a_column() -> None:
    table = read("sea, the\n\nsun\tand rain\n", column="keyword")

    assert (table.columns, table.rows) == (("keyword",), (("sea, the",), ("sun\tand rain",)))


def test_a_list_of_values_may_name_its_column_all_the_same() -> None:
    assert read("url\nhttp://a.example/?x=1,2\n", column="keyword") == Table(
        ("url",), (("http://a.example/?x=1,2",),), (2,)
    )


def test_short_rows_are_filled_up_and_empty_cells_at_the_end_forgotten() -> None:
    assert read("keyword,pages,\na\nb,2,,\n").rows == (("a", ""), ("b", "2"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no row"),
        (" \n\n", "There is no row"),
        ("keyword\n", "no row below"),
        ("keyword,keyword\na,b\n", "twice"),
        ("keyword,,pages\na,b,c\n", "Column 2 has no name"),
        ("keyword,pages\na,1,2\n", "Row 1 has 3 cells"),
        ('keyword\n"open\n', "Line 2 cannot be read"),
        ('keyword\n"a" b\n', "Line 2 cannot be read"),
        ("keyword\n" + "a\n" * 1001, "at most 1000 rows"),
        ("keyword\n" + "a" * 1024 * 1024, "more than 1024 KiB"),
        (",".join(f"c{n}" for n in range(201)) + "\n1\n", "at most 200 columns"),
    ],
)
def test_what_is_no_table_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(BadTable, match=said):
        read(text)


def test_a_thousand_rows_and_a_very_long_cell_are_taken() -> None:
    assert len(read("keyword\n" + "a\n" * 1000).rows) == 1000
    assert len(read("keyword\n" + "a" * 1_000_000).rows[0][0]) == 1_000_000


def test_noise_is_read_or_refused_but_never_breaks() -> None:
    noise = random.Random(4)  # noqa: S311 (to be repeated)
    letters = 'ab,;\t"\n\r\0\ufeff海 \u2028='
    for _turn in range(2000):
        text = "".join(noise.choice(letters) for _ in range(noise.randrange(40)))
        for content in (text.encode(), text.encode("utf-16"), noise.randbytes(20)):
            try:
                table = read(decoded(content), column=noise.choice(("", "keyword")))
            except BadTable as error:
                assert error.message  # noqa: PT017 (either outcome is right)
            else:
                assert all(len(row) == len(table.columns) for row in table.rows)
