"""The small HTML tree: selectors, broken pages, text."""

from __future__ import annotations

import time

import pytest
from clawspider.markup import SelectorError, parse

PAGE = """
<div id=top class="box first"><p>One <b>bold</b><p>Two<ul><li>a<li class=x>b<li>c</ul>
<a href="/next?a=1&amp;b=2" rel="next nofollow">Next&nbsp;&rarr;</a><br><img src=i.png></div>
<div class=box><div><a href='https://e.org/'>Out</a></div><script>var a = "<a href=no>";</script></div>
<table><tr><td>1<td>2<tr><td>3</table>
"""


@pytest.mark.parametrize(
    ("selector", "texts"),
    [
        ("p", ["One bold", "Two"]),
        ("li", ["a", "b", "c"]),
        ("ul > li.x", ["b"]),
        ("#top a", ["Next →"]),
        ("div.box a", ["Next →", "Out"]),
        ("div.box > a", ["Next →"]),
        ("div.box.first li", ["a", "b", "c"]),
        ("a[href^=https]", ["Out"]),
        ("a[href$='b=2']", ["Next →"]),
        ('a[rel*="next"], td', ["Next →", "1", "2", "3"]),
        ("tr td", ["1", "2", "3"]),
        ("img[src]", [""]),
        ("* > b", ["bold"]),
        ("a[href=no]", []),
        ("p p", []),
    ],
)
def test_selectors_find_what_css_would(selector: str, texts: list[str]) -> None:
    assert [node.text for node in parse(PAGE).select(selector)] == texts


def test_a_chain_of_look_ups_needs_no_checks() -> None:
    tree = parse(PAGE)
    assert tree.attribute_of("#top a", "href") == "/next?a=1&b=2"
    assert tree.attribute_of("#nothing a", "href", "none") == "none"
    assert tree.text_of("h1") == ""
    assert tree.first("h1") is None
    assert tree.select("div.box")[0].classes == ["box", "first"]


@pytest.mark.parametrize("selector", ["", " ", "p >", "p:first-child", "[", "a[href", ">", "p,,b"])
def test_a_selector_that_is_not_supported_is_refused(selector: str) -> None:
    with pytest.raises(SelectorError):
        parse(PAGE).select(selector)


@pytest.mark.parametrize(
    "html",
    ["", "<", "<a", "</b>", "<!", "<![CDATA[", "<!-- x", "<p><b></p></b>", "&#xD800;&#0;", "\0", "<a href>x</a>"],
)
def test_a_broken_page_is_still_a_page(html: str) -> None:
    parse(html).select("a")


def test_a_page_nested_without_end_is_read_in_reasonable_time() -> None:
    started = time.monotonic()
    tree = parse("<div>" * 50_000 + "<a href=x>deep</a>")
    assert tree.attribute_of("a", "href") == "x"
    assert time.monotonic() - started < 5
