"""The pages. Class names are those of quotes.toscrape.com and books.toscrape.com, so that one spider reads both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from html import escape
from typing import TypeVar
from urllib.parse import quote

from content import (
    AUTHORS,
    BOOKS,
    BOOKS_A_PAGE,
    CATEGORIES,
    QUOTES,
    QUOTES_A_PAGE,
    TAGS,
    Book,
    Quote,
    slug,
)

T = TypeVar("T")

_STARS = ("Zero", "One", "Two", "Three", "Four", "Five")
_COVERS = {
    "Travel": "#2f7f86",
    "Poetry": "#8a5a83",
    "Mystery": "#3b4252",
    "History": "#8c6239",
    "Science": "#2b6cb0",
    "Cooking": "#b7472a",
    "Children": "#d08b1f",
    "Fiction": "#4f7942",
}


def page(title: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} | Demo site</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><strong><a href="/">Demo site</a></strong> <a href="/catalogue/page-1.html">Books</a>
<a href="/quotes/page/1/">Quotes</a> <a href="/prices.csv">Prices</a></header>
{body}
</body>
</html>
"""


def home(day: date) -> str:
    return page(
        "Home",
        f"""<h1>A small site to practise crawling on</h1>
<p>{len(BOOKS)} books, {len(QUOTES)} quotes, and prices that change every day.
All of it is made up or out of copyright.</p>
<ul>
<li><a href="/catalogue/page-1.html">Books</a>: pages, detail pages, categories, covers</li>
<li><a href="/quotes/page/1/">Quotes</a>: pages, tags, authors</li>
<li><a href="/prices.csv">prices.csv</a> and <a href="/prices.json">prices.json</a>: today is
{day.isoformat()}; <code>?date=2026-01-31</code> asks for another day</li>
<li><a href="/slow?seconds=3"><code>/slow?seconds=3</code></a>: answers late</li>
<li><a href="/fail?status=503"><code>/fail?status=503</code></a>: answers with that status
(<code>&amp;retry_after=2</code> adds the header)</li>
<li><a href="/flaky?times=2"><code>/flaky?times=2&amp;key=a</code></a>: fails so often for each key, then works</li>
<li><a href="/robots.txt">robots.txt</a>: forbids <code>/private/</code></li>
</ul>""",
    )


def catalogue(number: int, day: date) -> str | None:
    return _book_list("All books", BOOKS, number, "/catalogue/page-{}.html", day)


def category(name: str, number: int, day: date) -> str | None:
    found = next((one for one in CATEGORIES if slug(one) == name), None)
    if found is None:
        return None
    books = [book for book in BOOKS if book.category == found]
    return _book_list(found, books, number, f"/catalogue/category/{name}/page-{{}}.html", day)


def book(number: int, day: date) -> str | None:
    if not 1 <= number <= len(BOOKS):
        return None
    one = BOOKS[number - 1]
    return page(
        one.title,
        f"""<ul class="breadcrumb"><li><a href="/">Home</a></li><li><a href="/catalogue/page-1.html">Books</a></li>
<li><a href="/catalogue/category/{slug(one.category)}/page-1.html">{escape(one.category)}</a></li>
<li class="active">{escape(one.title)}</li></ul>
<article class="product_page">
<div id="product_gallery"><div class="item active">
<img class="thumbnail" src="{one.image}" alt="{escape(one.title)}"></div></div>
<div class="product_main"><h1>{escape(one.title)}</h1>
{_price_and_stars(one, day, stock=f"({one.stock} available)" if one.stock else "")}
<div id="product_description"><h2>Product Description</h2></div>
<p>{escape(one.description)}</p>
<table class="table">
<tr><th>UPC</th><td>{one.sku}</td></tr>
<tr><th>Author</th><td>{escape(one.author)}</td></tr>
<tr><th>Category</th><td>{escape(one.category)}</td></tr>
</table></div></article>""",
    )


def quotes(number: int) -> str | None:
    return _quote_list("Quotes", QUOTES, number, "/quotes/page/{}/")


def tag(name: str, number: int) -> str | None:
    found = [one for one in QUOTES if name in one.tags]
    return (
        _quote_list(f"Quotes about {name}", found, number, f"/quotes/tag/{quote(name)}/page/{{}}/") if found else None
    )


def author(name: str) -> str | None:
    one = AUTHORS.get(name.replace("-", " ")) or AUTHORS.get(name)
    if one is None:
        return None
    return page(
        one.name,
        f"""<div class="author-details"><h3 class="author-title">{escape(one.name)}</h3>
<p><strong>Born:</strong> <span class="author-born-date">{escape(one.born)}</span>
<span class="author-born-location">{escape(one.place)}</span></p>
<div class="author-description">{escape(one.about)}</div></div>""",
    )


def cover(number: int) -> str | None:
    if not 1 <= number <= len(BOOKS):
        return None
    one = BOOKS[number - 1]
    lines = "".join(
        f'<text x="12" y="{58 + 24 * place}" font-size="17" font-weight="600">{escape(line)}</text>'
        for place, line in enumerate(_wrapped(one.title, 14))
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 220" font-family="Georgia, serif" fill="#fff">
<rect width="160" height="220" fill="{_COVERS[one.category]}"/><rect width="5" height="220" fill="#0003"/>
{lines}<text x="12" y="200" font-size="11">{escape(one.author)}</text></svg>"""


def not_found() -> str:
    return page("Not found", '<h1>There is no such page</h1><p><a href="/">Back to the start</a></p>')


def _book_list(title: str, books: Sequence[Book], number: int, path: str, day: date) -> str | None:
    shown, pages = _slice(books, number, BOOKS_A_PAGE)
    if not shown:
        return None
    links = "".join(
        f'<li><a href="/catalogue/category/{slug(one)}/page-1.html">{escape(one)}</a></li>' for one in CATEGORIES
    )
    items = "".join(_pod(one, day) for one in shown)
    return page(
        title,
        f"""<h1>{escape(title)}</h1><ul class="plain nav-list">{links}</ul>
<ol class="row">{items}</ol>{_pager(number, pages, path)}""",
    )


def _pod(one: Book, day: date) -> str:
    return f"""<li><article class="product_pod">
<div class="image_container"><a href="{one.path}">
<img src="{one.image}" alt="{escape(one.title)}" class="thumbnail"></a></div>
<h3><a href="{one.path}" title="{escape(one.title)}">{escape(_shortened(one.title))}</a></h3>
{_price_and_stars(one, day)}</article></li>
"""


def _price_and_stars(one: Book, day: date, stock: str = "") -> str:
    words = f"In stock {stock}".strip() if one.stock else "Out of stock"
    return f"""<p class="star-rating {_STARS[one.stars]}">{"<i>★</i>" * 5}</p>
<div class="product_price"><p class="price_color">£{one.price_on(day):.2f}</p>
<p class="instock availability">{words}</p></div>"""


def _quote_list(title: str, found: Sequence[Quote], number: int, path: str) -> str | None:
    shown, pages = _slice(found, number, QUOTES_A_PAGE)
    if not shown:
        return None
    items = "".join(_quote(one) for one in shown)
    all_tags = " ".join(_tag_link(one) for one in TAGS)
    return page(
        title,
        f'<h1>{escape(title)}</h1>{items}{_pager(number, pages, path)}<div class="tags-box">{all_tags}</div>',
    )


def _quote(one: Quote) -> str:
    return f"""<div class="quote"><span class="text">“{escape(one.text)}”</span>
<span>by <small class="author">{escape(one.author)}</small> <a href="{AUTHORS[one.author].path}">(about)</a></span>
<div class="tags">Tags: {" ".join(_tag_link(name) for name in one.tags)}</div></div>
"""


def _tag_link(name: str) -> str:
    return f'<a class="tag" href="/quotes/tag/{quote(name)}/page/1/">{escape(name)}</a>'


def _slice(rows: Sequence[T], number: int, size: int) -> tuple[Sequence[T], int]:
    first = (number - 1) * size
    return (rows[first : first + size] if number >= 1 else ()), -(-len(rows) // size)


def _pager(number: int, pages: int, path: str) -> str:
    back = (
        f'<li class="previous"><a href="{path.format(number - 1)}">← previous</a></li>' if number > 1 else "<li></li>"
    )
    on = f'<li class="next"><a href="{path.format(number + 1)}">next →</a></li>' if number < pages else "<li></li>"
    return f'<ul class="pager">{back}<li class="current">Page {number} of {pages}</li>{on}</ul>'


def _shortened(title: str) -> str:
    return title if len(title) <= 24 else title[:21] + "..."


def _wrapped(text: str, width: int) -> Iterable[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line
