"""What is wrong with a rule."""

from __future__ import annotations

from apps.core.errors import Invalid


class BadRule(Invalid):
    """A rule that cannot be kept; `field` is the argument of `rule_of` that is to blame."""

    code = "bad_schedule"

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence, fields={field: [sentence]})
        self.field = field
