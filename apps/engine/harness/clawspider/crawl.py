"""The crawl: fetch in threads, call the spider in the main thread, end with a reason and an exit code."""

from __future__ import annotations

import heapq
import importlib
import itertools
import logging
import queue
import signal
import threading
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, NamedTuple

from clawspider import exits, records
from clawspider.http import Callback, FetchError, Request, Response
from clawspider.spider import BaseSpider
from clawspider.stats import Reporter, Stats

if TYPE_CHECKING:
    from clawspider.fetch import Fetcher

logger = logging.getLogger("clawspider")


class StopSignal:
    """SIGTERM and Ctrl-C end the spider's own code at once, wherever it is; while it closes they are ignored."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.closing = False

    def install(self) -> None:
        signal.signal(signal.SIGTERM, self._arrived)
        signal.signal(signal.SIGINT, self._arrived)

    def _arrived(self, number: int, _frame: object) -> None:
        self.event.set()
        if not self.closing:
            self.closing = True
            raise exits.Stopped(exits.INTERRUPTED if number == signal.SIGINT else exits.STOPPED)


class Ending(NamedTuple):
    exit_code: int
    reason: str


class _Fetched(NamedTuple):
    request: Request
    response: Response | None
    error: FetchError | None


class Crawl:
    def __init__(self, spider: BaseSpider, stop: StopSignal) -> None:
        self.spider = spider
        self.stop = stop
        self.stats = Stats()
        self._reporter = Reporter(self.stats)
        self._fetcher: Fetcher | None = None
        self._waiting: list[tuple[int, int, Request]] = []
        self._order = itertools.count()
        self._seen: set[Any] = set()
        self._jobs: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._fetched: queue.SimpleQueue[_Fetched] = queue.SimpleQueue()
        self._threads = 0
        self._in_flight = 0
        self._first: set[int] = set()  # ids of start requests under way
        self._started = 0
        self._started_well = 0
        self._calls = 0
        self._failed_calls = 0

    def run(self) -> Ending:
        """Crawl to the end and tell how it went; never raises."""
        self._reporter.start()
        try:
            ending = self._crawl()
        finally:
            self.stop.closing = True
            self.stop.event.set()
        ending = self._close(ending)
        self._reporter.stop()
        self._finish(ending)
        return ending

    def _crawl(self) -> Ending:
        try:
            self.spider.on_start()
            self._loop()
        except exits.Stopped as stopped:
            return Ending(stopped.exit_code, "stopped")
        except exits.CloseSpider as closed:
            return Ending(closed.exit_code, closed.reason)
        except exits.BadParameters as error:
            logger.error("%s", error)  # noqa: TRY400 - the sentence says it all
            return Ending(exits.BAD_PARAMETERS, "bad_parameters")
        except SystemExit as error:
            code = exit_code_of(error)
            return Ending(code, "finished" if code == exits.OK else "exit")
        except Exception:
            logger.exception("The spider failed.")
            self.stats.add("errors")
            return Ending(exits.FAILED, "failed")
        return self._verdict()

    def _verdict(self) -> Ending:
        if self._started and not self._started_well:
            logger.error("No start request succeeded.")
            return Ending(exits.FAILED, "no_response")
        if self._calls and self._failed_calls == self._calls:
            logger.error("Every page failed in the spider's own code.")
            return Ending(exits.FAILED, "failed")
        return Ending(exits.OK, "finished")

    def _loop(self) -> None:
        starts: Iterator[Any] | None = iter(self.spider.start_requests() or ())
        while True:
            if self._waiting and self._in_flight < self.spider.concurrency:
                self._dispatch()
            elif starts is not None and self._in_flight < self.spider.concurrency and self._fetched.empty():
                try:
                    self._accept(next(starts), start=True)
                except StopIteration:
                    starts = None
            elif self._in_flight:
                self._handle(self._fetched.get())
            else:
                return

    def _dispatch(self) -> None:
        if self._fetcher is None:
            # TLS and HTTP take a third of the start-up time: loaded at the first request only.
            fetch = importlib.import_module("clawspider.fetch")
            self._fetcher = fetch.Fetcher(self.spider, self.stats, self._reporter, self.stop.event)
        request = heapq.heappop(self._waiting)[2]
        self._in_flight += 1
        if self._threads < min(self._in_flight, self.spider.concurrency):
            self._threads += 1
            name = f"fetch-{self._threads}"
            threading.Thread(target=self._work, args=(self._fetcher,), name=name, daemon=True).start()
        self._jobs.put(request)

    def _work(self, fetcher: Fetcher) -> None:
        while True:
            request = self._jobs.get()
            try:
                fetched = _Fetched(request, fetcher.fetch(request), None)
            except FetchError as error:
                fetched = _Fetched(request, None, error)
            except Exception as error:
                logger.exception("%s: fetching failed unexpectedly", request)
                fetched = _Fetched(request, None, FetchError(str(error), request=request))
            self._fetched.put(fetched)

    def _handle(self, fetched: _Fetched) -> None:
        self._in_flight -= 1
        request = fetched.request
        first = id(request) in self._first
        self._first.discard(id(request))
        if fetched.response is not None:
            self._started_well += first
            self._call(request.callback or self.spider.parse, fetched.response)
            return
        logger.warning("%s: %s", request, fetched.error)
        self.stats.add("failed_requests")
        if request.errback:
            self._call(request.errback, fetched.error)

    def _call(self, callback: Callback, argument: Any) -> None:
        self._calls += 1
        try:
            for result in _as_results(callback(argument)):
                self._accept(result)
        except (exits.CloseSpider, exits.BadParameters):
            raise
        except Exception:
            self._failed_calls += 1
            self.stats.add("errors")
            logger.exception("%s failed for %r", getattr(callback, "__name__", "the callback"), argument)

    def _accept(self, result: Any, *, start: bool = False) -> None:
        if isinstance(result, Request):
            self._enqueue(result, start=start)
        elif isinstance(result, Mapping):
            self._store(result)
        elif result is not None:
            raise TypeError(f"A spider yields dicts and Requests, not {type(result).__name__}.")

    def _enqueue(self, request: Request, *, start: bool) -> None:
        if not request.dont_filter:
            if request.fingerprint in self._seen:
                self.stats.add("filtered")
                return
            self._seen.add(request.fingerprint)
        if start:
            self._started += 1
            self._first.add(id(request))
        heapq.heappush(self._waiting, (-request.priority, next(self._order), request))

    def _store(self, item: Mapping[str, Any]) -> None:
        """One item that cannot be written costs one item, not the crawl."""
        try:
            records.emit(item)
        except records.RecordError as error:
            self.stats.add("errors")
            self.stats.add("rejected_items")
            logger.error("Item left out: %s", error)  # noqa: TRY400 - the sentence names the field
        else:
            self.stats.add("items")

    def _close(self, ending: Ending) -> Ending:
        try:
            self.spider.on_close(ending.reason)
        except SystemExit as error:
            return Ending(exit_code_of(error), ending.reason)
        except Exception:
            logger.exception("on_close failed")
            self.stats.add("errors")
            return ending if ending.exit_code else Ending(exits.FAILED, "failed")
        return ending

    def _finish(self, ending: Ending) -> None:
        totals = self.stats.snapshot()
        logger.info(
            "Closed: %s. %d items, %d requests, %d errors.",
            ending.reason,
            totals.get("items", 0),
            totals.get("requests", 0),
            totals.get("errors", 0),
        )
        if not records.on_laptop():
            records.write("finish", {"reason": ending.reason, "exit_code": ending.exit_code, "stats": totals})


def run_spider(spider_class: type[BaseSpider], params: Mapping[str, Any]) -> int:
    """Make the spider, crawl, and return the exit code of the run."""
    stop = StopSignal()
    stop.install()
    try:
        spider = spider_class(params)
        return Crawl(spider, stop).run().exit_code
    except exits.Stopped as stopped:
        return stopped.exit_code
    except exits.BadParameters as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence says it all
        return exits.BAD_PARAMETERS
    except ValueError:
        logger.exception("The spider does not accept its parameters.")
        return exits.BAD_PARAMETERS
    except Exception:
        logger.exception("The spider could not be made.")
        return exits.FAILED


def exit_code_of(error: SystemExit) -> int:
    """What the interpreter would end with: a number as it is, nothing is 0, a text is printed and means 1."""
    if error.code is None:
        return exits.OK
    if isinstance(error.code, int):
        return error.code & 0xFF
    logger.error("%s", error.code)
    return exits.FAILED


def _as_results(results: Any) -> Iterable[Any]:
    """What a callback returned as something to iterate: a generator or list, one item or request, or nothing."""
    if results is None:
        return ()
    return (results,) if isinstance(results, (Mapping, Request)) else results
