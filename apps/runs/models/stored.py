"""Logs, items and samples. The first two are partitioned by month (SQL in migration 0002), so retention is a DROP."""

from __future__ import annotations

from django.db import models


class LogChunk(models.Model):
    """Consecutive log lines as zstd-packed NDJSON rows `[line, at_ms, level, text]`, numbered run-wide from 1."""

    pk = models.CompositePrimaryKey("month", "run_id", "first_line")
    month = models.DateField()
    run_id = models.BigIntegerField()
    first_line = models.BigIntegerField()
    last_line = models.BigIntegerField()
    attempt = models.PositiveIntegerField()
    # Lines by level: [debug, info, warning, error, critical].
    levels = models.JSONField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    raw_bytes = models.IntegerField()
    content = models.BinaryField()

    class Meta:
        managed = False
        db_table = "runs_logchunk"

    def __str__(self) -> str:
        return f"lines {self.first_line}-{self.last_line} of run {self.run_id}"


class Item(models.Model):
    """One JSON object a run produced, numbered run-wide from 1. `dataset_id` is the job's id (0 without a job)."""

    pk = models.CompositePrimaryKey("month", "run_id", "seq")
    month = models.DateField()
    run_id = models.BigIntegerField()
    seq = models.BigIntegerField()
    attempt = models.PositiveIntegerField()
    dataset_id = models.BigIntegerField()
    created_at = models.DateTimeField()
    data = models.JSONField()

    class Meta:
        managed = False
        db_table = "runs_item"

    def __str__(self) -> str:
        return f"item {self.seq} of run {self.run_id}"


class ResourceSample(models.Model):
    """Use of a run's attempt at an instant, every five seconds."""

    run = models.ForeignKey("Run", models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    attempt = models.PositiveIntegerField()
    cpu_percent = models.FloatField()
    memory_bytes = models.BigIntegerField()
    memory_limit_bytes = models.BigIntegerField()
    pids = models.PositiveIntegerField()
    lines = models.BigIntegerField()
    items = models.BigIntegerField()

    class Meta:
        indexes = (models.Index(fields=("run", "at"), name="sample_by_run"),)

    def __str__(self) -> str:
        return f"sample {self.pk} of run {self.run_id}"
