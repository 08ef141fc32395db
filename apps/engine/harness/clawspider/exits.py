"""Exit codes of a run and the exceptions a spider raises to end one. They are documented in docs/spiders.md."""

from __future__ import annotations

OK = 0
FAILED = 1
BAD_PARAMETERS = 2
NOTHING_NEW = 3
USAGE = 64
CANNOT_LOAD = 65
MISSING_MODULE = 69
INTERRUPTED = 130
STOPPED = 143


class CloseSpider(Exception):
    """Raise it anywhere in a spider to end the crawl early and well."""

    exit_code = OK

    def __init__(self, reason: str = "finished") -> None:
        super().__init__(reason)
        self.reason = reason


class NothingNew(CloseSpider):
    """The site has nothing that is not known already: neither success with data nor a failure."""

    exit_code = NOTHING_NEW

    def __init__(self, reason: str = "nothing_new") -> None:
        super().__init__(reason)


class BadParameters(ValueError):
    """The run's parameters make no sense; the sentence is shown to the person who started it."""


class CannotLoad(Exception):
    """The spider's file cannot be loaded. `missing` names a module that is not installed."""

    def __init__(self, sentence: str, *, missing: str = "") -> None:
        super().__init__(sentence)
        self.missing = missing

    @property
    def exit_code(self) -> int:
        return MISSING_MODULE if self.missing else CANNOT_LOAD


class Stopped(BaseException):
    """SIGTERM or Ctrl-C arrived. Not an `Exception`, so that a spider's own `except Exception` lets it pass."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code
