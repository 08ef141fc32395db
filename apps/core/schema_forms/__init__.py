"""Forms and validation from a JSON Schema (2020-12): one builder for admin, staff page and API."""

from apps.core.schema_forms.cells import BadCell, Cells
from apps.core.schema_forms.coercion import coerced
from apps.core.schema_forms.form import SchemaForm
from apps.core.schema_forms.ordering import names_in_order, with_order
from apps.core.schema_forms.rules import SchemaFault, check_schema
from apps.core.schema_forms.templates import UNKNOWN, Render, with_values
from apps.core.schema_forms.validation import secret_names, split_secrets, validate, with_defaults

__all__ = [
    "UNKNOWN",
    "BadCell",
    "Cells",
    "Render",
    "SchemaFault",
    "SchemaForm",
    "check_schema",
    "coerced",
    "names_in_order",
    "secret_names",
    "split_secrets",
    "validate",
    "with_defaults",
    "with_order",
    "with_values",
]
