"""Expected refusals: each has a code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class PanelError(Exception):
    """A refusal that is nobody's bug. `fields` maps a dotted parameter or field name to its sentences."""

    code = "refused"
    status = 400

    def __init__(self, message: str, *, fields: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fields: dict[str, list[str]] = {key: list(value) for key, value in (fields or {}).items()}


class Invalid(PanelError):
    """Input that breaks a rule; `fields` says where."""

    code = "invalid"


class NotFound(PanelError):
    """Not there, or not for this person: the same answer for both."""

    code = "not_found"
    status = 404


class Conflict(PanelError):
    """The world has moved on: the object's state does not allow this any more."""

    code = "conflict"
    status = 409


class Forbidden(PanelError):
    """May see the object, may not do this with it."""

    code = "forbidden"
    status = 403
