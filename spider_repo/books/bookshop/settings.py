BOT_NAME = "bookshop"
SPIDER_MODULES = ["bookshop.spiders"]
NEWSPIDER_MODULE = "bookshop.spiders"

ROBOTSTXT_OBEY = True
USER_AGENT = "bookshop (a ClawPanel sample)"
CONCURRENT_REQUESTS_PER_DOMAIN = 4
DOWNLOAD_DELAY = 0.05
DOWNLOAD_TIMEOUT = 30
RETRY_TIMES = 3

ITEM_PIPELINES = {"bookshop.pipelines.CleanBook": 300}
