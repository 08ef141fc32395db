"""Write spiders that run under ClawPanel and on a laptop alike. Standard library only, Python 3.8 or newer."""

from clawspider.exits import BadParameters, CloseSpider, NothingNew
from clawspider.http import FetchError, Request, Response
from clawspider.params import params
from clawspider.records import RecordError, emit, output, progress, stat
from clawspider.spider import BaseSpider
from clawspider.version import VERSION

__version__ = VERSION

__all__ = [
    "BadParameters",
    "BaseSpider",
    "CloseSpider",
    "FetchError",
    "NothingNew",
    "RecordError",
    "Request",
    "Response",
    "__version__",
    "emit",
    "output",
    "params",
    "progress",
    "stat",
]
