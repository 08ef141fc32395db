"""Books of books.toscrape.com, or of the panel's demo site, which looks the same to a spider."""

import os

import scrapy

from bookshop.items import Book

STARS = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}


class BooksSpider(scrapy.Spider):
    name = "books"

    def __init__(self, start_url="", keywords=(), min_rating=1, max_pages=3, include_description=True, **kwargs):
        super().__init__(**kwargs)
        site = os.environ.get("CLAW_DEMO_SITE", "").rstrip("/")
        if not (start_url or site):
            raise ValueError("Give a start_url: there is no demo site.")
        self.start_urls = [start_url or f"{site}/catalogue/page-1.html"]
        self.keywords = [word.lower() for word in keywords]
        self.min_rating = int(min_rating)
        self.max_pages = int(max_pages)
        self.include_description = include_description
        self.pages = 0

    def parse(self, response):
        self.pages += 1
        self.logger.info("Page %d: %s", self.pages, response.url)
        for pod in response.css("article.product_pod"):
            book = self.book(pod, response)
            if not self.wanted(book):
                continue
            if self.include_description:
                yield response.follow(book["url"], self.parse_book, cb_kwargs={"book": book})
            else:
                yield book
        following = response.css("li.next a::attr(href)").get()
        if following and self.pages < self.max_pages:
            yield response.follow(following, self.parse)

    def book(self, pod, response):
        classes = (pod.css("p.star-rating::attr(class)").get() or "").split()
        return Book(
            title=pod.css("h3 a::attr(title)").get(),
            price=pod.css("p.price_color::text").get(),
            rating=next((STARS[name] for name in classes if name in STARS), 1),
            availability=" ".join(pod.css("p.availability::text").getall()),
            image=response.urljoin(pod.css("img.thumbnail::attr(src)").get() or ""),
            url=response.urljoin(pod.css("h3 a::attr(href)").get()),
        )

    def wanted(self, book):
        title = (book["title"] or "").lower()
        return book["rating"] >= self.min_rating and (not self.keywords or any(word in title for word in self.keywords))

    def parse_book(self, response, book):
        book["description"] = response.css("#product_description + p::text").get()
        book["category"] = response.css("ul.breadcrumb li:nth-child(3) a::text").get()
        book["availability"] = " ".join(response.css("div.product_main p.availability::text").getall())
        yield book
