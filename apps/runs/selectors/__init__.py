"""Reads of runs: each takes the user or a run that was taken through `visible_runs`."""

from apps.runs.selectors.items import (
    ItemText,
    all_items,
    item_columns,
    item_page,
    items_csv,
    items_jsonl,
    ordered_columns,
)
from apps.runs.selectors.logs import (
    LogBlock,
    LogPage,
    lines_before,
    log_index,
    log_page,
    log_page_before,
    log_rows,
    log_rows_before,
    log_text,
)
from apps.runs.selectors.nodes import NodeHealth, node_health
from apps.runs.selectors.runs import (
    RunStatus,
    attempts,
    events,
    is_active,
    last_line,
    run_status,
    samples,
    visible_runs,
    visible_runs_for_page,
)

__all__ = [
    "ItemText",
    "LogBlock",
    "LogPage",
    "NodeHealth",
    "RunStatus",
    "all_items",
    "attempts",
    "events",
    "is_active",
    "item_columns",
    "item_page",
    "items_csv",
    "items_jsonl",
    "last_line",
    "lines_before",
    "log_index",
    "log_page",
    "log_page_before",
    "log_rows",
    "log_rows_before",
    "log_text",
    "node_health",
    "ordered_columns",
    "run_status",
    "samples",
    "visible_runs",
    "visible_runs_for_page",
]
