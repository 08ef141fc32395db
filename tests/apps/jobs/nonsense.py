"""Policies that no job may have: as a service gets them, the field to blame, and as they are typed in the form."""

from __future__ import annotations

from typing import Any, NamedTuple


class Nonsense(NamedTuple):
    changes: dict[str, Any]
    field: str
    # None: the form's boxes leave no way to say it.
    typed: dict[str, Any] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """As it is sent to the API."""
        inside = {name for name in self.changes if name in LIMITS}
        limits = {name: self.changes[name] for name in inside}
        rest = {name: value for name, value in self.changes.items() if name not in inside}
        return {**rest, "limits": limits} if limits else rest

    @property
    def api_field(self) -> str:
        return f"limits.{self.field}" if self.field in LIMITS else self.field

    @property
    def form_field(self) -> str:
        return self.field.replace(".", "_")


LIMITS = (
    "memory_mb", "cpus", "timeout_seconds", "grace_seconds", "start_seconds", "idle_seconds", "total_seconds",
    "queue_seconds", "pause_seconds",
)  # fmt: skip


def limit(name: str, value: Any, typed: str | None = None) -> Nonsense:
    return Nonsense({name: value}, name, {name: str(value) if typed is None else typed})


def retry(name: str, value: Any, typed: str | list[str] | None = None, **more: Any) -> Nonsense:
    typed_more = {f"retry_{other}": str(given).strip("[]") for other, given in more.items()}
    form = None if typed is None else {f"retry_{name}": typed, **typed_more}
    return Nonsense({"retry": {name: value, **more}}, f"retry.{name}", form)


TOO_SHORT = {"timeout_seconds": "2h", "total_seconds": "1h30m"}
MANY_LABELS = "\n".join(f"l{n}=x" for n in range(21))
NONSENSE = [
    limit("grace_seconds", 86400, "1d"),
    limit("grace_seconds", -1),
    limit("grace_seconds", "601 s"),
    limit("timeout_seconds", 0),
    limit("timeout_seconds", "31d"),
    limit("timeout_seconds", "soon"),
    limit("timeout_seconds", "1h" * 1000),
    limit("start_seconds", 0),
    limit("start_seconds", "2d"),
    limit("idle_seconds", -5),
    limit("idle_seconds", "0"),
    limit("total_seconds", "30m"),
    limit("total_seconds", "91d"),
    limit("queue_seconds", "-1h"),
    limit("pause_seconds", 0),
    limit("pause_seconds", 10**15),
    Nonsense(TOO_SHORT, "total_seconds", TOO_SHORT),
    Nonsense({"timeout_seconds": None}, "timeout_seconds", {"timeout_seconds": ""}),
    Nonsense({"overlap": "sometimes"}, "overlap", {"overlap": "sometimes"}),
    Nonsense({"overlap": "allow", "overlap_max": 0}, "overlap_max", {"overlap": "allow", "overlap_max": "0"}),
    Nonsense({"overlap": "queue", "overlap_max": -1}, "overlap_max", {"overlap": "queue", "overlap_max": "-1"}),
    Nonsense({"overlap": "queue", "overlap_max": 1001}, "overlap_max", {"overlap": "queue", "overlap_max": "1001"}),
    Nonsense({"overlap": "skip", "overlap_max": 2}, "overlap_max"),
    Nonsense({"on_node_lost": "cry"}, "on_node_lost", {"on_node_lost": "cry"}),
    Nonsense({"retry": {"tries": 3}}, "retry.tries"),
    retry("attempts", 0, "0"),
    retry("attempts", 101, "101"),
    retry("attempts", 1.5, "1.5"),
    retry("attempts", True),
    retry("backoff", "random", "random"),
    retry("delay_seconds", -30, "-30"),
    retry("delay_seconds", "-30s", "-30s"),
    retry("delay_seconds", "8d", "8d"),
    retry("factor", 0, "0"),
    retry("factor", 0.5, "0.5"),
    retry("factor", -2, "-2"),
    retry("factor", 101, "101"),
    retry("factor", float("nan"), "nan"),
    retry("cap_seconds", 10, "10", delay_seconds="30s"),
    retry("cap_seconds", "10s", "10s", delay_seconds="30s", backoff="exponential"),
    retry("delays", [], "", backoff="list"),
    retry("delays", ["30s", "-5m"], "30s, -5m"),
    retry("delays", [5] * 101, ", ".join(["5s"] * 101)),
    retry("jitter", 1.1, "1.1"),
    retry("jitter", -0.1, "-0.1"),
    retry("causes", ["boredom"], ["boredom"]),
    retry("causes", [], [], attempts=3),
    retry("codes", [0], "0"),
    retry("codes", [256], "256"),
    retry("codes", ["x"], "x"),
    retry("never_codes", [-1], "-1"),
    retry("never_codes", [3, 4], "3, 4", codes=[4, 5]),
    retry("infrastructure", -1, "-1"),
    retry("infrastructure", 101, "101"),
    retry("items", "burn", "burn"),
    Nonsense({"pools": ["nowhere"]}, "pools", {"pools": ["999999"]}),
    Nonsense({"selector": {"": "x"}}, "selector", {"selector": "=x"}),
    Nonsense({"selector": {"a b": "x"}}, "selector", {"selector": "a b=x"}),
    Nonsense({"selector": {"zone": "eu\n"}}, "selector"),
    Nonsense({"selector": {f"l{n}": "x" for n in range(21)}}, "selector", {"selector": MANY_LABELS}),
    Nonsense({"repair_job": 2**40}, "repair_job", {"repair_job": str(2**40)}),
    Nonsense({"repair_job": -1}, "repair_job", {"repair_job": "-1"}),
]  # fmt: skip
