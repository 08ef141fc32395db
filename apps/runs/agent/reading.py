"""One step through a run's spools: what they hold becomes a batch that can be stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from apps.engine import spool
from apps.engine.levels import Level, Leveler, to_text
from apps.engine.records import Record, Reject, parse_record
from apps.runs.agent.followed import Followed
from apps.runs.ingest import Batch

OUT_WINDOW = 1024 * 1024  # smaller ones make a transaction for every 2 600 lines of a burst
RECORDS_WINDOW = 1024 * 1024
REJECTS_SPELLED_OUT = 20
STATS_KEYS = 500
VALUE_BYTES = 64 * 1024

_LEVEL_WORDS = {"trace": 10, "debug": 10, "info": 20, "notice": 20, "warning": 30, "warn": 30, "error": 40}
_LEVEL_WORDS |= {"critical": 50, "fatal": 50}


@dataclass(slots=True)
class Step:
    """`more`: the spools hold more than was read. `level_state` is the leveler's after this step.

    `final`: nobody wrote any more when the reading began, so after a final step without `more` everything is read.
    `alive`: the spider wrote a line, an item or a request; figures alone are sent by programs that hang, too.
    """

    batch: Batch
    more: bool
    partial: str
    notes: int
    level_state: int
    final: bool
    alive: bool = False


def read_step(followed: Followed) -> Step:
    """Reads from the stored position; changes nothing of `followed`, so a step that is not stored is read again."""
    at = followed.position
    final = followed.is_over
    out = spool.read_window(followed.run_dir / spool.OUT, at.out_offset, OUT_WINDOW, cut=at.out_cut, final=final)
    records = spool.read_window(
        followed.run_dir / spool.RECORDS,
        at.records_offset,
        RECORDS_WINDOW,
        cut=at.records_cut,
        final=final,
        rule=spool.RECORD_RULE,
    )
    batch = _batch(followed)
    batch.out_offset, batch.out_cut = out.next_offset, out.cut
    batch.records_offset, batch.records_cut = records.next_offset, records.cut
    notes = followed.notes
    batch.lines += notes
    leveler = Leveler(followed.leveler.state)
    if out.data:
        batch.lines += leveler.text_lines(followed.redactor.redact(to_text(out.data)))
    if records.data:
        _Records(followed, batch).take(records.data)
    alive = bool(len(batch.lines) > len(notes) or batch.items or batch.requests)
    if out.shrunk or records.shrunk:
        batch.damaged = True
        batch.lines.append(("The run's files were cut short from outside: a part is missing here.", Level.WARNING))
    partial = followed.redactor.redact(to_text(out.tail)) if out.tail and not final else ""
    more = not (out.at_end and records.at_end)
    followed.behind = max(0, out.size - out.next_offset) + max(0, records.size - records.next_offset)
    fullest = max(out.size, records.size)
    followed.output_full = followed.output_full or fullest >= followed.limits.output_bytes
    if not final:
        # An unfinished line is no reason to read again at once.
        more = more and bool(out.data or records.data)
    return Step(batch, more, partial, len(notes), leveler.state, final, alive)


def blind_step(followed: Followed) -> Step:
    """Stays where it is; only our own lines are taken."""
    final = followed.is_over
    batch = _batch(followed)
    notes = followed.notes
    batch.lines += notes
    return Step(batch, more=False, partial="", notes=len(notes), level_state=followed.leveler.state, final=final)


def _batch(followed: Followed) -> Batch:
    at = followed.position
    return Batch(
        run_id=followed.run_id,
        token=followed.token,
        attempt=followed.attempt,
        month=followed.month,
        dataset_id=followed.dataset_id,
        base=at,
        out_offset=at.out_offset,
        records_offset=at.records_offset,
        out_cut=at.out_cut,
        records_cut=at.records_cut,
    )


class _Records:
    """Sorts the records of one window into the batch."""

    def __init__(self, followed: Followed, batch: Batch) -> None:
        self.followed = followed
        self.batch = batch

    def take(self, data: bytes) -> None:
        items = self.batch.items
        hide = self.followed.redactor
        for line in data.split(b"\n"):
            record = parse_record(line)
            if record is None:
                continue
            if isinstance(record, Reject):
                self._reject(record.reason)
            elif record.verb == "item":
                items.append(hide.redact_values(record.raw) if hide.holds_secret(record.raw) else record.raw)
            else:
                _VERBS[record.verb](self, record)

    def _reject(self, reason: str) -> None:
        self.batch.rejected += 1
        count = self.followed.rejected + self.batch.rejected
        if count <= REJECTS_SPELLED_OUT:
            self._warn(f"Rejected record {count}: {reason}")
        if count == REJECTS_SPELLED_OUT:
            self._warn("Further rejected records are only counted.")

    def _warn(self, text: str) -> None:
        self.batch.lines.append((text, Level.WARNING))

    def log(self, record: Record) -> None:
        text = record.obj.get("message", record.obj.get("text", ""))
        text = text if isinstance(text, str) else orjson.dumps(text).decode()
        level = _level(record.obj.get("level"))
        for line in self.followed.redactor.redact(text).splitlines() or [""]:
            self.batch.lines.append((line, level))

    def request(self, record: Record) -> None:
        self.batch.requests += 1

    def stat(self, record: Record) -> None:
        stats = self.batch.stats if self.batch.stats is not None else self.followed.stats
        self._merge("stats", stats, record.obj)

    def output(self, record: Record) -> None:
        output = self.batch.output if self.batch.output is not None else self.followed.output
        self._merge("output", output, record.obj)

    def _merge(self, name: str, before: dict[str, Any], new: dict[str, Any]) -> None:
        merged = {**before, **new}
        if len(merged) > STATS_KEYS or len(orjson.dumps(merged)) > VALUE_BYTES:
            self._reject(f"The {name} of a run may have {STATS_KEYS} keys and 64 KiB; this record was left out.")
            return
        setattr(self.batch, name, self._hidden(merged))

    def progress(self, record: Record) -> None:
        if len(record.raw) > VALUE_BYTES:
            self._reject("A progress record may have 64 KiB.")
            return
        self.batch.progress = self._hidden(record.obj)

    def finish(self, record: Record) -> None:
        """The spider's own last word: totals, and why it ended."""
        totals = record.obj.get("stats")
        new = dict(totals) if isinstance(totals, dict) else {}
        reason = record.obj.get("reason", record.obj.get("outcome"))
        if isinstance(reason, str):
            new["finish_reason"] = reason[:200]
        stats = self.batch.stats if self.batch.stats is not None else self.followed.stats
        self._merge("stats", stats, new)

    def _hidden(self, value: dict[str, Any]) -> dict[str, Any]:
        raw = orjson.dumps(value)
        if not self.followed.redactor.holds_secret(raw):
            return value
        hidden: dict[str, Any] = orjson.loads(self.followed.redactor.redact_values(raw))
        return hidden


_VERBS = {
    "log": _Records.log,
    "request": _Records.request,
    "stat": _Records.stat,
    "output": _Records.output,
    "progress": _Records.progress,
    "finish": _Records.finish,
}


def _level(value: object) -> int:
    """Python's numbers or words; anything else is INFO."""
    if isinstance(value, str):
        return _LEVEL_WORDS.get(value.lower(), 20)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return min(50, max(10, int(value) // 10 * 10))
    return 20
