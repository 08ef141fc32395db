"""Every sentence a person may read has its Chinese one, with the same values in it."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

ROOT = Path(__file__).parent.parent
CATALOG = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.mo"
FUNCTIONS = {"gettext": 0, "gettext_lazy": 0, "gettext_noop": 0, "ngettext": 0, "ngettext_lazy": 0}
FUNCTIONS |= {"pgettext": 1, "pgettext_lazy": 1, "npgettext": 1, "npgettext_lazy": 1}
TEXT = r"""u?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
IN_TEMPLATE = re.compile(rf"\b(n?pgettext|n?gettext|_)\(\s*{TEXT}(?:\s*,\s*{TEXT})?")
VALUES = re.compile(r"%\(\w+\)[sd]|%\(\w+\)0\dd")

Message = tuple[str, str]


def in_python(source: str) -> Iterator[Message]:
    module = ast.parse(source)
    known: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation":
            known |= {name.asname or name.name: name.name for name in node.names if name.name in FUNCTIONS}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            place = FUNCTIONS[known[node.func.id]]
            texts = [each.value for each in node.args[: place + 1] if isinstance(each, ast.Constant)]
            if len(texts) == place + 1:
                yield (str(texts[0]) if place else "", str(texts[place]))


def in_template(source: str) -> Iterator[Message]:
    for function, first, second in IN_TEMPLATE.findall(templatize(source)):
        if "pgettext" in function:
            yield ast.literal_eval(first), ast.literal_eval(second)
        else:
            yield "", ast.literal_eval(first)


def messages() -> dict[Message, str]:
    """Each message with a file it is in."""
    found: dict[Message, str] = {}
    for folder, pattern, read in (
        ("apps", "*.py", in_python),
        ("clawpanel", "*.py", in_python),
        ("templates", "*.html", in_template),
    ):
        for path in sorted((ROOT / folder).rglob(pattern)):
            for message in read(path.read_text(encoding="utf-8")):
                found.setdefault(message, str(path.relative_to(ROOT)))
    return {message: place for message, place in found.items() if message[1].strip()}


@pytest.fixture(scope="module")
def catalog() -> gettext.GNUTranslations:
    with CATALOG.open("rb") as file:
        return gettext.GNUTranslations(file)


def translated(catalog: gettext.GNUTranslations, message: Message) -> str:
    context, text = message
    key = f"{context}\x04{text}" if context else text
    found = catalog._catalog  # type: ignore[attr-defined]  # the public methods answer with the English text instead
    return str(found.get(key) or found.get((key, 0)) or "")


def test_nothing_is_left_in_english(catalog: gettext.GNUTranslations) -> None:
    missing = [f"{place}: {message[1]!r}" for message, place in messages().items() if not translated(catalog, message)]
    assert not missing, "no Chinese text (see docs/translating.md):\n" + "\n".join(missing)


def test_translations_carry_the_same_values(catalog: gettext.GNUTranslations) -> None:
    wrong = [
        message[1]
        for message in messages()
        if set(VALUES.findall(message[1])) - {"%(n)d", "%(n)s"} - set(VALUES.findall(translated(catalog, message)))
    ]
    assert not wrong


def test_the_extraction_sees_both_kinds_of_sources() -> None:
    found = messages()
    assert ("", "Runs") in found
    assert ("tab", "Log") in found
    assert len(found) > 400
