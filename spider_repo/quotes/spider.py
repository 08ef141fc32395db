"""Quotes of quotes.toscrape.com, or of the panel's demo site, which looks the same to a spider."""

import os

from clawspider import BadParameters, BaseSpider, Request, output, progress


class QuotesSpider(BaseSpider):
    name = "quotes"
    version = "1.0.0"
    description = "Quotes with author and tags, page after page."

    def __init__(self, params):
        super().__init__(params)
        self.start_url = params.get("start_url") or self.demo_url()
        self.tag = params.get("tag") or ""
        self.max_pages = int(params.get("max_pages") or 10)
        self.with_authors = bool(params.get("with_authors", True))
        self.pages = 0
        self.quotes = 0
        self.born = {}  # author's page -> when and where the author was born
        self.waiting = {}  # author's page -> quotes that wait for it

    @staticmethod
    def demo_url():
        site = os.environ.get("CLAW_DEMO_SITE")
        if not site:
            raise BadParameters("Give a start_url: there is no demo site.")
        return site.rstrip("/") + "/quotes/page/1/"

    def on_start(self):
        self.logger.info("Collecting quotes from %s", self.start_url)

    def start_requests(self):
        yield Request(self.start_url)

    def parse(self, response):
        self.pages += 1
        for block in response.select("div.quote"):
            tags = [tag.text for tag in block.select("div.tags a.tag")]
            if self.tag and self.tag not in tags:
                continue
            quote = {
                "text": unquoted(block.text_of("span.text")),
                "author": block.text_of("small.author"),
                "tags": tags,
                "url": response.url,
            }
            yield from self.with_author(quote, response, block.attribute_of("span a", "href"))
        yield from self.next_page(response)

    def next_page(self, response):
        link = response.first("li.next a")
        progress(self.pages, self.max_pages if link else self.pages, f"page {self.pages}")
        if link and self.pages < self.max_pages:
            yield response.follow(link, priority=-1)  # authors first, so that quotes do not pile up

    def with_author(self, quote, response, link):
        """The quote itself, or a request for its author's page, on which the quote then waits."""
        if not self.with_authors or not link:
            yield self.counted(quote)
            return
        page = response.urljoin(link)
        if page in self.born:
            yield self.counted({**quote, **self.born[page]})
        elif page in self.waiting:
            self.waiting[page].append(quote)
        else:
            self.waiting[page] = [quote]
            yield Request(page, self.parse_author, errback=self.author_failed, meta={"page": page})

    def parse_author(self, response):
        page = response.meta["page"]
        when, where = response.text_of("span.author-born-date"), response.text_of("span.author-born-location")
        self.born[page] = {"born": f"{when} {where}".strip(), "author_url": response.url}
        for quote in self.waiting.pop(page):
            yield self.counted({**quote, **self.born[page]})

    def author_failed(self, error):
        """A quote is worth keeping without its author's page, too."""
        page = error.request.meta["page"]
        self.born[page] = {}
        for quote in self.waiting.pop(page):
            yield self.counted(quote)

    def counted(self, quote):
        self.quotes += 1
        return quote

    def on_close(self, reason):
        output("quotes", self.quotes)
        output("authors", len(self.born))
        self.logger.info("%d quotes on %d pages (%s)", self.quotes, self.pages, reason)


def unquoted(text):
    """Without the one pair of quotation marks that the site puts around each quote."""
    return text[1:-1] if text.startswith("“") and text.endswith("”") else text
