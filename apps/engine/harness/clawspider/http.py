"""Requests and responses as a spider sees them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping
from urllib.parse import urldefrag, urljoin, urlsplit

from clawspider.markup import Node, parse

if TYPE_CHECKING:
    from email.message import Message

Callback = Callable[..., Any]
_META_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)


class Request:
    """A page to fetch. `callback` gets the response (default: the spider's `parse`); higher `priority` goes first."""

    def __init__(
        self,
        url: str,
        callback: Callback | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        json_body: Any = None,
        priority: int = 0,
        dont_filter: bool = False,
        errback: Callback | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"A request needs an http or https address, not {url!r}.")
        self.url = urldefrag(url).url
        self.callback = callback
        self.errback = errback
        self.meta: dict[str, Any] = dict(meta or {})
        self.method = method.upper()
        self.headers: dict[str, str] = dict(headers or {})
        if json_body is not None:
            body = json.dumps(json_body)
            self.headers.setdefault("Content-Type", "application/json")
        self.body = body.encode() if isinstance(body, str) else body
        self.priority = priority
        self.dont_filter = dont_filter

    def __repr__(self) -> str:
        return f"<{self.method} {self.url}>"

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.lower()

    @property
    def fingerprint(self) -> tuple[str, str, bytes | None]:
        """Equal for requests that fetch the same thing."""
        return self.method, self.url, self.body


class Response:
    """What a server answered. `url` is the address after redirects."""

    def __init__(self, *, request: Request, url: str, status: int, headers: Message, body: bytes) -> None:
        self.request = request
        self.url = url
        self.status = status
        self.headers = headers
        self.body = body
        self._text: str | None = None
        self._tree: Node | None = None

    def __repr__(self) -> str:
        return f"<{self.status} {self.url}>"

    @property
    def meta(self) -> dict[str, Any]:
        return self.request.meta

    @property
    def encoding(self) -> str:
        named = self.headers.get_content_charset()
        if not named:
            found = _META_CHARSET.search(self.body[:4096])
            named = found.group(1).decode() if found else "utf-8"
        return named

    @property
    def text(self) -> str:
        """The body as text; bytes that do not fit the encoding become replacement characters."""
        if self._text is None:
            try:
                self._text = self.body.decode(self.encoding, "replace")
            except LookupError:  # the page names an encoding that nobody knows
                self._text = self.body.decode("utf-8", "replace")
        return self._text

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def tree(self) -> Node:
        if self._tree is None:
            self._tree = parse(self.text)
        return self._tree

    def select(self, selector: str) -> list[Node]:
        return self.tree.select(selector)

    def first(self, selector: str) -> Node | None:
        return self.tree.first(selector)

    def text_of(self, selector: str, default: str = "") -> str:
        return self.tree.text_of(selector, default)

    def attribute_of(self, selector: str, attribute: str, default: str = "") -> str:
        return self.tree.attribute_of(selector, attribute, default)

    def urljoin(self, address: str) -> str:
        return urljoin(self.url, address)

    def follow(self, link: str | Node, callback: Callback | None = None, **options: Any) -> Request:
        """A request for a link of this page: an address, or an element with `href` or `src`."""
        address = link if isinstance(link, str) else link.get("href") or link.get("src")
        return Request(self.urljoin(address), callback, **options)

    def follow_all(
        self, links: str | Iterable[str | Node], callback: Callback | None = None, **options: Any
    ) -> list[Request]:
        """Requests for several links, or for all elements that a selector finds; links to elsewhere than the web
        (mailto:, javascript:) are left out."""
        found: Iterable[str | Node] = self.select(links) if isinstance(links, str) else links
        requests = []
        for link in found:
            address = self.urljoin(link if isinstance(link, str) else link.get("href") or link.get("src"))
            if urlsplit(address).scheme in ("http", "https"):
                requests.append(Request(address, callback, **options))
        return requests


class FetchError(Exception):
    """A request failed for good, after all retries. `response` is there when the server did answer."""

    def __init__(self, sentence: str, *, request: Request, response: Response | None = None) -> None:
        super().__init__(sentence)
        self.request = request
        self.response = response
