"""The form: draws parameters, reads them back, keeps what was typed, says what is wrong where."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from apps.core.json_text import BadJson, parse_json
from apps.core.schema_forms.bound import Bound, Drawing
from apps.core.schema_forms.builder import build
from apps.core.schema_forms.containers import kept
from apps.core.schema_forms.controls import Faults, SecretControl
from apps.core.schema_forms.nodes import Node, posted, posted_bytes
from apps.core.schema_forms.templates import Render, with_values
from apps.core.schema_forms.validation import MAX_BYTES, MAX_DEPTH, dotted, split_secrets, validate

MAX_SECRET = 64 * 1024
# More rows than this are edited as JSON: a page of boxes would be of no use.
MANY_ROWS = 200


class SchemaForm:
    """Like a Django form. After `is_valid()`: `parameters`, `secrets` newly typed and `cleared`, or `errors`.

    Buttons inside the form (add a row, remove one, switch to JSON and back) post it too: then it is not valid, has no
    errors, `was_rearranged` is true, and it is to be shown again.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        data: QueryDict | None = None,
        initial: Mapping[str, Any] | None = None,
        secrets_set: Collection[str] = (),
        prefix: str = "p",
        samples: Render | None = None,
    ) -> None:
        """Templates are taken where there are `samples` to try them with."""
        self._samples = samples
        self.schema, self.prefix, self.is_bound = schema, prefix, data is not None
        self._data = data if data is not None else QueryDict()
        self._root = build(schema)
        self._secrets_set = frozenset(secrets_set)
        self.parameters: dict[str, Any] = {}
        # As far as it can be read, valid or not.
        self.typed: dict[str, Any] = {}
        self.secrets: dict[str, str] = {}
        self.cleared: frozenset[str] = frozenset()
        self.errors: dict[str, list[str]] = {}
        self.was_rearranged = False
        self.mode = "form"
        self.json_text = ""
        self._checked = False
        self._node = Node()
        if data is None:
            self._show(dict(initial or {}))

    # -- reading ------------------------------------------------------------------------------------------------

    def is_valid(self) -> bool:
        if self.is_bound and not self._checked:
            self._checked = True
            self._read()
        return self.is_bound and not self.errors and not self.was_rearranged

    def _read(self) -> None:
        self.mode = "json" if self._data.get(self._own("mode")) == "json" else "form"
        self.json_text = self._data.get(self._own("json"), "") if self.mode == "json" else ""
        if posted_bytes(self._data, self.prefix) > MAX_BYTES + MAX_SECRET:
            self.errors = {"": [_("These are more than %(kib)d KiB of parameters.") % {"kib": MAX_BYTES // 1024}]}
            self.json_text = ""
            return
        node = posted(self._data, self.prefix)
        self._node = self._root.tidy(node)
        faults = self._read_secrets(node)
        values = self._read_json(faults) if self.mode == "json" else self._root.parse(node, (), faults)
        self.typed = values if isinstance(values, dict) else {}
        if self._rearrange(values, faults):
            self.was_rearranged = True
            return
        self._judge(values, faults)

    def _own(self, name: str) -> str:
        return f"{self.prefix}__{name}"

    def _read_secrets(self, node: Node) -> Faults:
        faults: Faults = {}
        names = {control.name for control in self._root.controls if isinstance(control, SecretControl)}
        self.cleared = frozenset(self._data.getlist(self._own("clear"))) & names & self._secrets_set
        for name in names:
            text = node.child(name).text
            if len(text.encode("utf-8", "replace")) > MAX_SECRET:
                faults[(name,)] = [_("A secret has at most %(kib)d KiB.") % {"kib": MAX_SECRET // 1024}]
            elif text:
                self.secrets[name] = text
        self.cleared -= self.secrets.keys()
        return faults

    def _read_json(self, faults: Faults) -> Any:
        try:
            values = parse_json(self.json_text or "{}", max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
        except BadJson as error:
            faults[()] = [_("This is not valid JSON: %(why)s") % {"why": error.message}]
            return {}
        if isinstance(values, dict):
            values, typed = split_secrets(self.schema, values)
            # Secrets belong into their own boxes; a program that posts JSON may still put them here.
            self.secrets.update({name: value for name, value in typed.items() if isinstance(value, str)})
            faults.update({(name,): [_("A secret is a text.")] for name, v in typed.items() if not isinstance(v, str)})
        return values

    def _judge(self, values: Any, faults: Faults) -> None:
        self.errors = {dotted(path): said for path, said in faults.items()}
        if () in faults:
            return
        tried, unknown = values, []
        if self._samples is not None and isinstance(values, dict):
            result = with_values(self.schema, values, self._samples)
            tried, unknown = result.parameters, result.unknown
            self.errors |= result.faults
        whole = {**tried, **self.secrets} if isinstance(tried, dict) else tried
        stored = self._secrets_set - self.cleared
        for path, said in validate(self.schema, whole, secrets=stored, unknown=unknown).items():
            # A value that could not be read is wrong or missing for the schema as well: one sentence is enough.
            if not any(path == dotted(bad) or path.startswith(dotted(bad) + ".") for bad in faults):
                self.errors[path] = said
        if not self.errors:
            self.parameters = dict(values)

    # -- buttons of the form itself --------------------------------------------------------------------------

    def _rearrange(self, values: Any, faults: Faults) -> bool:
        wanted = self._data.get(self._own("switch"))
        if wanted == "json" and self.mode == "form":
            self.mode, self.json_text = "json", self._as_json(self._raw_values(values, faults))
        elif wanted == "form" and self.mode == "json":
            known = {control.name for control in self._root.controls}
            if () in faults or not isinstance(values, dict) or values.keys() - known:
                return False
            self.mode, self._node = "form", self._root.node_of(values)
        elif path := self._data.get(self._own("remove")):
            self._remove(path)
        elif self._own("add") not in self._data and wanted is None:
            return False
        # Adding needs no work: the posted rows are all taken, and there is always one blank row after them.
        return True

    def _raw_values(self, values: Any, faults: Faults) -> Any:
        """For the JSON view nothing typed may get lost: what could not be read goes there as text."""
        for path in faults:
            node, place = self._node, values
            for key in path[:-1]:
                node = node.child(str(key))
                place = place[key] if isinstance(place, list) and isinstance(key, int) else _inner(place, str(key))
            if path and node.child(str(path[-1])).values and isinstance(place, dict):
                place[str(path[-1])] = node.child(str(path[-1])).text
            elif path and isinstance(place, list) and isinstance(path[-1], int) and path[-1] < len(place):
                place[path[-1]] = node.child(str(path[-1])).text
        return values

    def _remove(self, path: str) -> None:
        *above, last = path.split(".")[: 2 * MAX_DEPTH]
        node = self._node
        for part in above:
            node = node.child(part)
        node.children.pop(last, None)
        rows = node.rows()
        others = {name: child for name, child in node.children.items() if not name.isdecimal()}
        node.children = {**{str(index): row for index, row in enumerate(rows)}, **others}

    # -- drawing ------------------------------------------------------------------------------------------------

    def _show(self, initial: dict[str, Any]) -> None:
        known = {control.name for control in self._root.controls if not isinstance(control, SecretControl)}
        values = {name: value for name, value in initial.items() if name in known}
        self._node = self._root.node_of(values)
        faults: Faults = {}
        read_back = self._root.parse(self._node, (), faults)
        if _has_many_rows(values) or not (faults or kept(values, read_back) or validate(self.schema, values)):
            self.mode, self.json_text = "json", self._as_json(values)

    def _as_json(self, values: Any) -> str:
        return json.dumps(values, ensure_ascii=False, indent=2)

    @cached_property
    def _drawing(self) -> Drawing:
        self.is_valid()
        lost = frozenset(self.secrets) if self.is_bound else frozenset()
        return Drawing(self.prefix, self.errors, self._secrets_set - self.cleared, lost, self._samples is not None)

    @cached_property
    def _bound(self) -> list[Bound]:
        return [Bound(c, self._node.child(c.name), (c.name,), self._drawing) for c in self._root.controls]

    @property
    def fields(self) -> list[Bound]:
        """All fields in form mode; in JSON mode only the secrets, which cannot be in the JSON."""
        if self.mode == "json":
            return [bound for bound in self._bound if isinstance(bound.control, SecretControl)]
        return self._bound

    @property
    def plain_fields(self) -> list[Bound]:
        return [bound for bound in self.fields if not bound.control.advanced]

    @property
    def advanced_fields(self) -> list[Bound]:
        return [bound for bound in self.fields if bound.control.advanced]

    @property
    def advanced_has_faults(self) -> bool:
        return any(bound.has_faults for bound in self.advanced_fields)

    @property
    def general_errors(self) -> list[tuple[str, str]]:
        """Path and sentence of faults that no field shows; in JSON mode that is all but those of the secrets."""
        self.is_valid()
        shown = {bound.path for bound in self.fields} if self.mode == "json" else self._shown()
        return [(path, said) for path, sentences in self.errors.items() if path not in shown for said in sentences]

    def _shown(self) -> set[str]:
        assert self._bound is not None  # noqa: S101 (drawing the fields fills the set)
        return self._drawing.shown

    @property
    def error_list(self) -> list[tuple[str, str, str]]:
        """(id of the box, label, sentence) of every fault at a field, for a summary with links."""

        def walk(bounds: list[Bound]) -> list[tuple[str, str, str]]:
            found: list[tuple[str, str, str]] = []
            for bound in bounds:
                found += [(bound.id, bound.control.title, said) for said in bound.errors]
                found += walk(bound.children)
            return found

        return walk(self.fields)

    def __str__(self) -> SafeString:
        self.is_valid()
        return render_to_string("forms/schema_form.html", {"form": self})

    __html__ = __str__


def _inner(place: Any, key: str) -> Any:
    return place.setdefault(key, {}) if isinstance(place, dict) else None


def _has_many_rows(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) > MANY_ROWS or any(map(_has_many_rows, value))
    return isinstance(value, dict) and any(map(_has_many_rows, value.values()))
