"""Filling in the templates of an order, once a run."""

from apps.jobs.services.rendering.filling import Filled, filled_in
from apps.jobs.services.rendering.preparing import prepare, prepare_waiting, request_preparation
from apps.jobs.services.rendering.previewing import Preview, preview

__all__ = ["Filled", "Preview", "filled_in", "prepare", "prepare_waiting", "preview", "request_preparation"]
