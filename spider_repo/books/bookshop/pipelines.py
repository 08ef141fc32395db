import re

from scrapy.exceptions import DropItem

CURRENCIES = {"£": "GBP", "€": "EUR", "$": "USD"}


class CleanBook:
    """Prices become numbers; a book without a price is dropped."""

    def process_item(self, item, spider=None):
        text = item.get("price") or ""
        number = re.search(r"\d+(?:\.\d+)?", text.replace(",", ""))
        if number is None:
            raise DropItem(f"No price: {item.get('url')}")
        item["currency"] = next((code for sign, code in CURRENCIES.items() if sign in text), None)
        item["price"] = float(number.group())
        item["availability"] = " ".join((item.get("availability") or "").split())
        stock = re.search(r"\((\d+) available\)", item["availability"])
        item["stock"] = int(stock.group(1)) if stock else None
        return item
