"""What the demo site sells and quotes. Prices depend on the day alone, so two crawls of one day agree."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

HERE = Path(__file__).resolve().parent
CURRENCY = "GBP"
BOOKS_A_PAGE = 12
QUOTES_A_PAGE = 8
_CHANGES_ONE_DAY_IN = 3
_LARGEST_CHANGE_PERCENT = 15


@dataclass(frozen=True)
class Book:
    id: int
    title: str
    author: str
    category: str
    price: float
    stars: int
    stock: int

    @property
    def sku(self) -> str:
        return f"BK-{self.id:04d}"

    @property
    def path(self) -> str:
        return f"/catalogue/{slug(self.title) or 'book'}_{self.id}/index.html"

    @property
    def image(self) -> str:
        return f"/media/{self.id}.svg"

    @property
    def description(self) -> str:
        return (
            f"{_OPENINGS[self.category]} {self.author} takes {60 + self.id * 7} pages over it and wastes none. "
            f"“{self.title}” is read in two evenings and remembered for longer."
        )

    def price_on(self, day: date) -> float:
        """One book in three has another price than the day before."""
        changed = next(back for back in range(400) if self._dice(day, back) % _CHANGES_ONE_DAY_IN == 0)
        steps = self._dice(day, changed) // _CHANGES_ONE_DAY_IN % (2 * _LARGEST_CHANGE_PERCENT + 1)
        return round(self.price * (100 + steps - _LARGEST_CHANGE_PERCENT) / 100, 2)

    def _dice(self, day: date, days_back: int) -> int:
        return crc32(f"{self.id}/{day.toordinal() - days_back}".encode())


@dataclass(frozen=True)
class Author:
    name: str
    born: str
    place: str
    about: str

    @property
    def path(self) -> str:
        return f"/quotes/author/{quote(self.name.replace(' ', '-'))}/"


@dataclass(frozen=True)
class Quote:
    author: str
    text: str
    tags: tuple[str, ...]


_OPENINGS = {
    "Travel": "A suitcase, a missed connection and a change of plans for the better.",
    "Poetry": "Short lines about large things, and one long line about a kettle.",
    "Mystery": "Somebody lied about the weather, and the inspector noticed.",
    "History": "What the clerks wrote down while the kings were busy elsewhere.",
    "Science": "A patient explanation of something that happens every day.",
    "Cooking": "Plain recipes, honest about the washing-up.",
    "Children": "To be read aloud, with all the voices.",
    "Fiction": "Nothing much happens, and by the end everything has changed.",
}


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _load(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


BOOKS = tuple(Book(**row) for row in _load("books.json"))
_quotes = _load("quotes.json")
AUTHORS = {row["name"]: Author(**row) for row in _quotes["authors"]}
QUOTES = tuple(Quote(row["author"], row["text"], tuple(row["tags"])) for row in _quotes["quotes"])
CATEGORIES = tuple(sorted({book.category for book in BOOKS}))
TAGS = tuple(sorted({tag for one in QUOTES for tag in one.tags}))


def price_rows(day: date) -> list[dict[str, object]]:
    return [
        {
            "sku": book.sku,
            "title": book.title,
            "currency": CURRENCY,
            "price": book.price_on(day),
            "date": day.isoformat(),
        }
        for book in BOOKS
    ]
