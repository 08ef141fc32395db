"""One plain sentence for every way a run can end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.runs.states import State
from apps.spiders.models import in_language


class Ended(Protocol):
    """What a sentence needs to know: a run, or an event or attempt of one."""

    reason: str
    detail: dict[str, Any]


def sentence(ended: Ended) -> str:
    """Why it ended, in the reader's language; empty when there is nothing to explain."""
    if not ended.reason:
        return ""
    detail = ended.detail or {}
    say = _SENTENCES.get(ended.reason)
    text = say(detail) if say else _("It ended for the reason “%(reason)s”.") % {"reason": ended.reason}
    if detail.get("killed_after_grace"):
        text += " " + _("It did not end by itself in the time given and was killed.")
    if detail.get("unreachable"):
        text += " " + _("Node %(node)s did not answer, so nobody saw it end.") % {"node": detail.get("node", "")}
    return text


def memory_sentence(*, memory_mb: int) -> str:
    """For a run that went on although a part of it was killed for memory."""
    return _("A part of it was killed because it needed more than %(mb)d MB of memory.") % {"mb": memory_mb}


def span(seconds: float) -> str:
    """ "10 minutes", "90 seconds": the largest unit that says it exactly."""
    whole = round(seconds)
    for size, unit in ((86400, _days), (3600, _hours), (60, _minutes)):
        if whole >= size and whole % size == 0:
            return unit(whole // size)
    return ngettext("%(n)d second", "%(n)d seconds", whole) % {"n": whole}


def _days(n: int) -> str:
    return ngettext("%(n)d day", "%(n)d days", n) % {"n": n}


def _hours(n: int) -> str:
    return ngettext("%(n)d hour", "%(n)d hours", n) % {"n": n}


def _minutes(n: int) -> str:
    return ngettext("%(n)d minute", "%(n)d minutes", n) % {"n": n}


def _exit_nonzero(detail: Mapping[str, Any]) -> str:
    if detail.get("signal"):
        return _("It was ended by the signal %(signal)s (exit code %(code)s).") % {
            "signal": detail["signal"],
            "code": detail.get("exit_code"),
        }
    code = detail.get("exit_code")
    meaning = _meaning(detail)
    if meaning:
        return _("It ended with exit code %(code)s: %(meaning)s.") % {"code": code, "meaning": meaning}
    if code == 127:
        return _("Its command was not found (exit code 127).")
    if code == 126:
        return _("Its command cannot be executed (exit code 126).")
    return _("It ended with exit code %(code)s.") % {"code": code}


def _meaning(detail: Mapping[str, Any]) -> str:
    """What the spider's registry entry says of the exit code, in the reader's language, without a mark at its end."""
    texts = detail.get("meaning")
    return in_language(texts).rstrip(" .!?\u3002\uff01\uff1f") if isinstance(texts, dict) else ""


def _exit_meaning(detail: Mapping[str, Any]) -> str:
    return _exit_nonzero({"exit_code": detail.get("exit_code"), "meaning": detail.get("meaning")})


def _oom(detail: Mapping[str, Any]) -> str:
    if "memory_mb" in detail:
        return _("Out of memory: it needed more than %(mb)d MB.") % {"mb": detail["memory_mb"]}
    return _("Out of memory.")


def _stopped(detail: Mapping[str, Any]) -> str:
    if detail.get("by") and detail.get("batch"):
        return _("Stopped by %(name)s, with all of batch %(batch)s.") % {"name": detail["by"], "batch": detail["batch"]}
    if detail.get("by"):
        return _("Stopped by %(name)s.") % {"name": detail["by"]}
    return _("Stopped by a person.")


def _upstream_failed(detail: Mapping[str, Any]) -> str:
    unmet = [each for each in detail.get("upstreams") or () if isinstance(each, dict)]
    if not unmet:
        return _("Skipped: the jobs it follows have not come to what it waits for.")
    return " ".join(_unmet(each) for each in unmet)


def _unmet(upstream: Mapping[str, Any]) -> str:
    """One edge that was not met."""
    state, run = upstream.get("state"), upstream.get("run")
    values = {"job": upstream.get("job") or "?", "run": run, "state": _state_word(state)}
    fails = upstream.get("condition") == "failure"
    if state is None:
        if fails:
            return _("Skipped: it runs when job %(job)s fails, and that has never finished a run.") % values
        return _("Skipped: it runs when job %(job)s succeeds, and that has never finished a run.") % values
    if run is None:
        if fails:
            return _("Skipped: it runs when job %(job)s fails, and that has come to “%(state)s”.") % values
        return _("Skipped: it runs when job %(job)s succeeds, and that has come to “%(state)s”.") % values
    if fails:
        return _("Skipped: it runs when job %(job)s fails, and run %(run)d of it has ended as “%(state)s”.") % values
    return _("Skipped: it runs when job %(job)s succeeds, and run %(run)d of it has ended as “%(state)s”.") % values


def _state_word(state: Any) -> str:
    return str(State(state).label) if state in State.values else str(state)


def _overlap_skip(detail: Mapping[str, Any]) -> str:
    if "max" in detail:
        return _("Skipped: %(waiting)d runs of the job were waiting already, which is the most it allows.") % {
            "waiting": detail["waiting"]
        }
    if "run" in detail:
        return _("Skipped: run %(id)s of the same job was still active.") % {"id": detail["run"]}
    return _("Skipped: an earlier run of the same job was still active.")


def _repair_refused(detail: Mapping[str, Any]) -> str:
    words = {"job": detail.get("job") or "?", "error": detail.get("error") or ""}
    return _("Repair job %(job)s could not be run: %(error)s") % words


def _with_span(exact: Callable[[], str], plain: Callable[[], str]) -> Callable[[Mapping[str, Any]], str]:
    """The sentence with the limit that was reached, where it is known; `exact` says "%(span)s" for it."""

    def say(detail: Mapping[str, Any]) -> str:
        seconds = detail.get("seconds")
        return exact() % {"span": span(seconds)} if isinstance(seconds, (int, float)) else plain()

    return say


def _on_node(named: Callable[[], str], plain: Callable[[], str]) -> Callable[[Mapping[str, Any]], str]:
    """The sentence with the name of the node, where it is known; `named` says "%(node)s" for it."""

    def say(detail: Mapping[str, Any]) -> str:
        return named() % {"node": detail["node"]} if detail.get("node") else plain()

    return say


def _poison(detail: Mapping[str, Any]) -> str:
    deaths = detail.get("deaths")
    if not isinstance(deaths, int):
        return _("Set aside: workers died one after another while they looked after it.")
    sentence = _("Set aside: %(n)d workers died one after another while they looked after it.")
    return sentence % {"n": deaths} + " " + _("What it wrote last was not read.")


def _replaced(detail: Mapping[str, Any]) -> str:
    if detail.get("run"):
        return _("Replaced by run %(run)s of the same job.") % {"run": detail["run"]}
    return _("Replaced by a newer run of the same job.")


def _exhausted(detail: Mapping[str, Any]) -> str:
    if detail.get("out_of_time"):
        return _("It is not tried again: the time limit for all its attempts leaves no time for it.")
    failures, allowed = detail.get("failures", 0), detail.get("attempts", 0)
    if detail.get("infrastructure"):
        return _("It is not tried again: the machines have failed it %(n)d times, and %(most)d may be made up for.") % {
            "n": failures,
            "most": allowed,
        }
    return ngettext(
        "It is not tried again: its only attempt has failed.",
        "It is not tried again: all its %(n)d attempts have failed.",
        allowed,
    ) % {"n": allowed}


def _unplaceable(detail: Mapping[str, Any]) -> str:
    labels = label_text(detail.get("selector") or {})
    memory, cpus = "largest_mb" in detail, "most_cpus" in detail
    values = {
        "labels": labels,
        "need": detail.get("memory_mb", 0),
        "largest": detail.get("largest_mb", 0),
        "cpus": f"{detail.get('cpus', 0):g}",
        "most": f"{detail.get('most_cpus', 0):g}",
    }
    if not memory and not cpus:
        return _("No node can run it: none has the labels %(labels)s.") % values if labels else _("No node can run it.")
    if memory and cpus:
        said = _(
            "No node can run it: none has both the %(need)d MB of memory and the %(cpus)s CPUs it needs;"
            " the largest have %(largest)d MB and %(most)s CPUs."
        )
    elif memory:
        said = _("No node can run it: it needs %(need)d MB of memory, the largest node has %(largest)d MB.")
    else:
        said = _("No node can run it: it needs %(cpus)s CPUs, the largest node has %(most)s.")
    if labels:
        said += " " + _("Only nodes with the labels %(labels)s count.")
    return said % values


def label_text(labels: Mapping[str, str]) -> str:
    """ "zone=eu, browser=yes": the same in every language."""
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _because(plain: Callable[[], str]) -> Callable[[Mapping[str, Any]], str]:
    """The plain sentence, and after it what the engine said."""

    def say(detail: Mapping[str, Any]) -> str:
        error = str(detail.get("error") or "").strip()
        return f"{plain()} {error}" if error else plain()

    return say


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "exit_nonzero": _exit_nonzero,
    "exit_meaning": _exit_meaning,
    "killed": lambda _detail: _("It was killed from outside (exit code 137)."),
    "oom": _oom,
    "stopped_by_user": _stopped,
    "user": _stopped,
    "overlap_skip": _overlap_skip,
    "upstream_failed": _upstream_failed,
    "repair_run": lambda detail: _("Run %(id)s of job %(job)s.") % {"id": detail["run"], "job": detail["job"]},
    "repair_refused": _repair_refused,
    "repair_of": lambda detail: _("It was asked for because run %(id)s had failed for good.") % {"id": detail["run"]},
    "replaced": _replaced,
    "run_timeout": _with_span(
        lambda: _("Stopped after the time limit of %(span)s."), lambda: _("Stopped after its time limit.")
    ),
    "idle_timeout": _with_span(
        lambda: _("Stopped because it had written no line, item or request for %(span)s."),
        lambda: _("Stopped because it had shown no sign of life for too long."),
    ),
    "start_timeout": _with_span(
        lambda: _("It had not started after %(span)s."), lambda: _("It did not start in time.")
    ),
    "total_timeout": _with_span(
        lambda: _("Ended after the time limit of %(span)s for all its attempts."),
        lambda: _("Ended after the time limit for all its attempts."),
    ),
    "queue_expired": _with_span(
        lambda: _("It was not started within the %(span)s it may wait."),
        lambda: _("It waited too long and was not started."),
    ),
    "pause_limit": _with_span(
        lambda: _("It goes on: it had been paused for %(span)s."), lambda: _("It goes on: its pause was too long.")
    ),
    "exhausted": _exhausted,
    "output_limit": lambda _detail: _("It wrote more output than it may."),
    "item_limit": lambda _detail: _("It produced more items than it may."),
    "unplaceable": _unplaceable,
    "image_build_failed": _because(lambda: _("What it requires could not be installed.")),
    "image_missing": _because(lambda: _("The image it runs in is missing.")),
    "create_failed": _because(lambda: _("It could not be started.")),
    "param_error": _because(lambda: _("Its parameters cannot be used.")),
    "code_missing": _because(lambda: _("The code of this version is not there or damaged.")),
    "storage_error": _because(lambda: _("Its output could not be stored.")),
    "container_vanished": lambda _detail: _("It vanished: its container or process is gone and left no exit code."),
    "worker_lost": lambda _detail: _("The worker that ran it was lost."),
    "node_lost": _on_node(
        lambda: _("Node %(node)s stopped answering, so its end is not known."),
        lambda: _("Its node stopped answering, so its end is not known."),
    ),
    "node_drained": _on_node(
        lambda: _("Ended because node %(node)s was to be empty by then."),
        lambda: _("Ended because its node was to be empty by then."),
    ),
    "poison": _poison,
    "engine_restarted": lambda _detail: _("The container engine of the node was restarted."),
    "engine_unavailable": _because(lambda: _("The container engine did not answer; the run waits for a place again.")),
}
