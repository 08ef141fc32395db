"""Parameters that know the date: `{{ name | filter:"argument" }}` in a text, and nothing else.

Only what a person has typed is read; a value that is put in is never read again. See docs/schedules.md.
"""

from apps.core.templating.faults import TemplateFault
from apps.core.templating.filling import MAX_RESULT, Values, finished, render, render_for_later
from apps.core.templating.language import MAX_TEMPLATE, Expression, Template, is_template, parse
from apps.core.templating.moments import Moment, day_of
from apps.core.templating.names import Known, canonical, check, names_in, root_of
from apps.core.templating.nested import Where, each_text, replaced

__all__ = [
    "MAX_RESULT",
    "MAX_TEMPLATE",
    "Expression",
    "Known",
    "Moment",
    "Template",
    "TemplateFault",
    "Values",
    "Where",
    "canonical",
    "check",
    "day_of",
    "each_text",
    "finished",
    "is_template",
    "names_in",
    "parse",
    "render",
    "render_for_later",
    "replaced",
    "root_of",
]
