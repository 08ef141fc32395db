"""Run one spider of a Scrapy project as it is: items, requests and figures are taken from Scrapy's signals.

Imported only by `clawspider scrapy`: it needs Scrapy, which nothing else here does.
"""

from __future__ import annotations

import importlib
import logging
import signal
from typing import Any, Mapping
from urllib.parse import urlsplit

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.settings import SETTINGS_PRIORITIES, Settings
from scrapy.utils.project import get_project_settings, inside_project

from clawspider import exits, records
from clawspider.crawl import Ending
from clawspider.loading import explained
from clawspider.logs import configure, level_from_environment
from clawspider.stats import Reporter, Stats

logger = logging.getLogger("clawspider")

SETTING_PREFIX = "settings."
_BAD_REASONS = frozenset(("shutdown", "failed", "memusage_exceeded", "closespider_errorcount"))


def run(name: str, params: Mapping[str, Any]) -> int:
    """Crawl with the project's spider of that name; returns the exit code of the run."""
    if not inside_project():
        raise exits.CannotLoad("There is no Scrapy project here: no scrapy.cfg in this folder or above.")
    arguments = {key: value for key, value in params.items() if not key.startswith(SETTING_PREFIX)}
    with explained("The Scrapy project"):
        process = _process(_settings(params))
        known = process.spider_loader.list()
    if name not in known:
        raise exits.CannotLoad(f"The project has no spider {name}; it has: {', '.join(known) or 'none'}.")
    return _Run(process, name).crawl(arguments).exit_code


def _settings(params: Mapping[str, Any]) -> Settings:
    settings = get_project_settings()
    # Scrapy logs every page and item at DEBUG; that is kept only where the project or the run asks for it.
    chosen = settings.getpriority("LOG_LEVEL") != SETTINGS_PRIORITIES["default"]
    level = level_from_environment(_level(settings.get("LOG_LEVEL")) if chosen else logging.INFO)
    settings.set("LOG_LEVEL", logging.getLevelName(level), priority="cmdline")
    for name in ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED"):  # each would listen on a port
        settings.set(name, value=False, priority="cmdline")
    for key, value in params.items():
        if key.startswith(SETTING_PREFIX):
            settings.set(key[len(SETTING_PREFIX) :], value, priority="cmdline")
    configure(level)
    return settings


def _process(settings: Settings) -> CrawlerProcess:
    """Without Scrapy's own log handler: newer versions want to be told by a setting, older ones by an argument."""
    if "LOG_INSTALL_ROOT_HANDLER" not in settings:
        return CrawlerProcess(settings, install_root_handler=False)
    settings.set("LOG_INSTALL_ROOT_HANDLER", value=False, priority="cmdline")
    return CrawlerProcess(settings)


def _level(name: Any) -> int:
    number = logging.getLevelName(name) if isinstance(name, str) else name
    return number if isinstance(number, int) else logging.INFO


class _Run:
    def __init__(self, process: CrawlerProcess, name: str) -> None:
        self._process = process
        self._name = name
        self._stats = Stats()
        self._reporter = Reporter(self._stats)
        self._answered: set[int] = set()  # ids of requests whose answer came
        self._good_pages = 0
        self._pages = 0
        self._failed_calls = 0
        self._reason = "failed"
        self._stopped_by = 0
        self._failure: BaseException | None = None

    def crawl(self, arguments: Mapping[str, Any]) -> Ending:
        with explained(f"Spider {self._name}"):
            crawler = self._process.create_crawler(self._name)
        self._connect(crawler)
        signal.signal(signal.SIGTERM, self._signal_arrived)
        signal.signal(signal.SIGINT, self._signal_arrived)
        self._reporter.start()
        crawling = self._process.crawl(crawler, **arguments)
        crawling.addErrback(self._failed)
        self._process.start(install_signal_handlers=False)
        ending = self._ending(crawler)
        self._reporter.stop()
        self._finish(crawler, ending)
        return ending

    def _connect(self, crawler: Crawler) -> None:
        for handler, event in (
            (self._item_scraped, signals.item_scraped),
            (self._item_dropped, signals.item_dropped),
            (self._callback_failed, signals.item_error),
            (self._callback_failed, signals.spider_error),
            (self._request_sent, signals.request_reached_downloader),
            (self._request_left, signals.request_left_downloader),
            (self._request_dropped, signals.request_dropped),
            (self._response_downloaded, signals.response_downloaded),
            (self._response_received, signals.response_received),
            (self._closed, signals.spider_closed),
        ):
            crawler.signals.connect(handler, signal=event)

    # Scrapy passes to each handler only the arguments it names.

    def _item_scraped(self, item: Any) -> None:
        try:
            records.emit(ItemAdapter(item).asdict())
        except records.RecordError as error:
            self._stats.add("errors")
            self._stats.add("rejected_items")
            logger.error("Item left out: %s", error)  # noqa: TRY400 - the sentence names the field
        else:
            self._stats.add("items")

    def _item_dropped(self) -> None:
        self._stats.add("dropped_items")

    def _callback_failed(self) -> None:
        self._failed_calls += 1
        self._stats.add("errors")

    def _request_sent(self, request: Any) -> None:
        if request.meta.get("retry_times"):
            self._stats.add("retries")

    def _request_dropped(self) -> None:
        self._stats.add("filtered")

    def _response_downloaded(self, response: Any, request: Any) -> None:
        self._answered.add(id(request))
        self._report(request, status=response.status, size=len(response.body))

    def _request_left(self, request: Any) -> None:
        if id(request) in self._answered:
            self._answered.discard(id(request))
        else:
            self._report(request, status=None, size=0, error="no answer")

    def _report(self, request: Any, *, status: int | None, size: int, error: str = "") -> None:
        ms = round(request.meta.get("download_latency", 0) * 1000)
        self._reporter.request(url=request.url, method=request.method, status=status, ms=ms, size=size, error=error)

    def _response_received(self, response: Any) -> None:
        if urlsplit(response.url).path == "/robots.txt":
            return
        self._pages += 1
        self._good_pages += response.status < 400

    def _closed(self, reason: str) -> None:
        self._reason = reason

    def _failed(self, failure: Any) -> None:
        self._failure = failure.value
        logger.error(
            "The crawl could not be run.", exc_info=(failure.type, failure.value, failure.getTracebackObject())
        )

    def _signal_arrived(self, number: int, _frame: object) -> None:
        """Let Scrapy finish what is in flight. Further signals change nothing: who cannot wait sends SIGKILL."""
        if self._stopped_by:
            return
        self._stopped_by = number
        logger.info("Asked to stop: finishing the requests under way.")
        reactor = importlib.import_module("twisted.internet.reactor")  # the module is the reactor object
        reactor.callFromThread(self._process.stop)

    def _ending(self, crawler: Crawler) -> Ending:
        if self._stopped_by:
            code = exits.INTERRUPTED if self._stopped_by == signal.SIGINT else exits.STOPPED
            return Ending(code, "stopped")
        if self._failure is not None:
            bad_parameters = isinstance(self._failure, (ValueError, TypeError))
            return Ending(exits.BAD_PARAMETERS, "bad_parameters") if bad_parameters else Ending(exits.FAILED, "failed")
        if self._reason == "nothing_new":
            return Ending(exits.NOTHING_NEW, self._reason)
        if self._reason in _BAD_REASONS:
            return Ending(exits.FAILED, self._reason)
        return self._verdict(crawler)

    def _verdict(self, crawler: Crawler) -> Ending:
        if self._stats.get("items"):
            return Ending(exits.OK, self._reason)
        if self._stats.get("requests") and not self._good_pages:
            logger.error("No request succeeded.")
            return Ending(exits.FAILED, "no_response")
        logged = _stats_of(crawler).get("log_count/ERROR", 0)
        if self._failed_calls >= self._pages and (self._pages or logged):
            logger.error("Every page failed in the spider's own code.")
            return Ending(exits.FAILED, "failed")
        return Ending(exits.OK, self._reason)

    def _finish(self, crawler: Crawler, ending: Ending) -> None:
        totals = self._stats.snapshot()
        logger.info("Closed: %s. %d items.", ending.reason, totals.get("items", 0))
        if records.on_laptop():
            return
        record: dict[str, Any] = {"reason": ending.reason, "exit_code": ending.exit_code, "stats": totals}
        figures = _stats_of(crawler).items()
        record["scrapy"] = {key: value for key, value in figures if isinstance(value, (int, float, str))}
        records.write("finish", record)


def _stats_of(crawler: Crawler) -> Mapping[str, Any]:
    """Scrapy's own figures; none when the crawl did not even begin (newer versions raise then)."""
    try:
        return crawler.stats.get_stats() if crawler.stats else {}
    except RuntimeError:
        return {}
