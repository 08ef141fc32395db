"""Stores what the agent read."""

from apps.runs.finishing import Ending
from apps.runs.ingest.batch import Batch, Position
from apps.runs.ingest.samples import SampleRow, store_samples
from apps.runs.ingest.write import store_batches

__all__ = ["Batch", "Ending", "Position", "SampleRow", "store_batches", "store_samples"]
