"""Find the spider class in a file, and say in one sentence why when that fails."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import sys
import traceback
from pathlib import Path
from types import ModuleType

from clawspider.exits import CannotLoad
from clawspider.spider import BaseSpider

logger = logging.getLogger("clawspider")


def load_spider(target: str) -> type[BaseSpider]:
    """The class that `file.py:Class` or `file.py` names; without a name, the only one the file defines."""
    file, _, name = target.partition(":")
    module = load_module(Path(file))
    if not name:
        return _only_spider(module, file)
    found = getattr(module, name, None)
    if not (inspect.isclass(found) and issubclass(found, BaseSpider)):
        known = ", ".join(one.__name__ for one in _spiders(module)) or "none"
        raise CannotLoad(f"{file} has no BaseSpider class {name}; it defines: {known}.")
    return found


def load_module(path: Path) -> ModuleType:
    """Import a file by path, its own folder first on the search path."""
    if not path.is_file():
        raise CannotLoad(f"There is no file {path}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise CannotLoad(f"{path} is not a Python file.")
    sys.path.insert(0, str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with explained(str(path)):
        spec.loader.exec_module(module)
    return module


class explained:  # noqa: N801 - used like a function
    """Turn what goes wrong while spider code is imported into `CannotLoad`, with the traceback in the log."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, CannotLoad):
            return
        traceback.print_exception(type(error), error, error.__traceback__)
        if isinstance(error, ModuleNotFoundError) and error.name:
            top = error.name.partition(".")[0]
            raise CannotLoad(f'The module "{top}" is missing: add it to requirements.txt.', missing=top) from error
        if isinstance(error, SyntaxError):
            where = f"{error.filename or self._what}, line {error.lineno}"
            raise CannotLoad(f"{where}: {error.msg}.") from error
        raise CannotLoad(f"{self._what} cannot be loaded: {type(error).__name__}: {error}.") from error


def _only_spider(module: ModuleType, file: str) -> type[BaseSpider]:
    found = _spiders(module)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CannotLoad(f"{file} defines no BaseSpider class.")
    names = ", ".join(one.__name__ for one in found)
    raise CannotLoad(f"{file} defines several spiders ({names}): name one as {file}:{found[0].__name__}.")


def _spiders(module: ModuleType) -> list[type[BaseSpider]]:
    return [
        one
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, BaseSpider) and one.__module__ == module.__name__
    ]
