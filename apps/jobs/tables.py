"""The policies of a job in words, for its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.core.durations import format_duration
from apps.jobs.models import Job, NodeLost, Overlap
from apps.jobs.services.overlap import MOST_WAITING
from apps.runs.policies import CAUSES, Backoff, FailedItems, RetryPolicy

# Pauses are told one by one up to here, unless they all are the same.
SHOWN_PAUSES = 4


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """`repair` is the id of a job to link to."""

    title: str
    sentence: str
    repair: int | None = None


def policy_rows(job: Job, *, may_see_repair: bool) -> list[PolicyRow]:
    """What is as usual and says nothing is left out."""
    policy = RetryPolicy.read(job.retry)
    rows = [
        PolicyRow(_("When it is active already"), overlap_words(job)),
        PolicyRow(_("When it fails"), retry_words(policy)),
        PolicyRow(_("When a node fails"), node_words(job, policy)),
    ]
    if policy.attempts > 1 and policy.items is FailedItems.REPLACE:
        rows.append(PolicyRow(_("Items of a failed attempt"), _("Replaced by those of the next attempt.")))
    if job.repair_job is not None:
        name = str(job.repair_job) if may_see_repair else f"#{job.repair_job_id}"
        link = job.repair_job_id if may_see_repair else None
        rows.append(PolicyRow(_("When all attempts have failed"), _("Job %(name)s runs.") % {"name": name}, link))
    for column, title in _SPANS.items():
        if (seconds := getattr(job, column)) is not None:
            rows.append(PolicyRow(str(title), format_duration(seconds)))
    if pools := sorted(job.pools.all(), key=lambda pool: pool.name):
        words = ", ".join(
            _("%(name)s (%(limit)d at once)") % {"name": pool.name, "limit": pool.limit} for pool in pools
        )
        rows.append(PolicyRow(_("Pools"), words))
    if job.selector:
        rows.append(PolicyRow(_("Only on nodes with"), ", ".join(f"{k}={v}" for k, v in sorted(job.selector.items()))))
    return rows


_SPANS: dict[str, str | Promise] = {
    "start_seconds": gettext_lazy("Limit for the start"),
    "idle_seconds": gettext_lazy("Limit without a sign of life"),
    "total_seconds": gettext_lazy("Limit over all attempts"),
    "queue_seconds": gettext_lazy("Limit in the queue"),
    "pause_seconds": gettext_lazy("Longest pause by hand"),
}


def overlap_words(job: Job) -> str:
    return _OVERLAPS[Overlap(job.overlap)](job.overlap_max)


def _queue(most: int | None) -> str:
    n = most or MOST_WAITING
    return ngettext(
        "A new run waits for the earlier one; at most %(n)d waits.",
        "New runs wait for the earlier ones; at most %(n)d wait.",
        n,
    ) % {"n": n}


def _allow(most: int | None) -> str:
    if most is None:
        return _("Runs go side by side, as many as there are places.")
    return ngettext("At most %(n)d run goes at once.", "At most %(n)d runs go side by side.", most) % {"n": most}


_OVERLAPS: dict[Overlap, Callable[[int | None], str]] = {
    Overlap.SKIP: lambda _most: _("A new run is skipped."),
    Overlap.QUEUE: _queue,
    Overlap.ALLOW: _allow,
    Overlap.REPLACE: lambda _most: _("A new run stops the earlier one and takes its place."),
}


def section_words(job: Job) -> dict[str, str]:
    """What each folded section of the form holds, by its name; a new job has nothing stored yet."""
    pools = sorted(pool.name for pool in job.pools.all()) if job.pk else []
    labels = [f"{name}={value}" for name, value in sorted(job.selector.items())]
    return {
        "fails": retry_words(RetryPolicy.read(job.retry)),
        "bounds": overlap_words(job),
        "places": ", ".join([*pools, *labels]) or _("On any node, in no pool."),
    }


def retry_words(policy: RetryPolicy) -> str:
    if policy.attempts < 2:
        return _("It is not tried again.")
    again = policy.attempts - 1
    said = [
        ngettext(
            "Tries again once, %(pauses)s.", "Tries again up to %(n)d times, %(pauses)s.", again
        ) % {"n": again, "pauses": _pauses(policy, again)}
    ]  # fmt: skip
    if set(policy.causes) != set(CAUSES):
        causes = _(" or ").join(str(_CAUSES[cause]) for cause in CAUSES if cause in policy.causes)
        said.append(_("Only when it %(causes)s.") % {"causes": causes})
    if policy.codes:
        said.append(_("Only with exit code %(codes)s.") % {"codes": _codes(policy.codes)})
    if policy.never_codes:
        said.append(_("Never with exit code %(codes)s.") % {"codes": _codes(policy.never_codes)})
    return " ".join(said)


def _codes(codes: tuple[int, ...]) -> str:
    return ", ".join(map(str, codes))


def _pauses(policy: RetryPolicy, again: int) -> str:
    plain = replace(policy, jitter=0.0)
    # Those beyond the last of a list, or at the cap, are all the same.
    spans = [format_duration(round(plain.delay(failure))) for failure in range(1, min(again, SHOWN_PAUSES) + 1)]
    if policy.backoff is Backoff.FIXED or len(set(spans)) == 1:
        return (
            _("after %(span)s each time") % {"span": spans[0]}
            if again > 1
            else _("after %(span)s") % {"span": spans[0]}
        )
    if again > len(spans):
        return _("after %(span)s and so on") % {"span": ", ".join(spans)}
    return _("after %(span)s") % {"span": ", ".join(spans)}


_CAUSES: dict[str, str | Promise] = {
    "exit": gettext_lazy("ends with an error"),
    "oom": gettext_lazy("runs out of memory"),
    "timeout": gettext_lazy("takes too long"),
}


def node_words(job: Job, policy: RetryPolicy) -> str:
    said = []
    if policy.infrastructure:
        said.append(
            ngettext(
                "It is started again once, which is no attempt of its own.",
                "It is started again up to %(n)d times, which are no attempts of its own.",
                policy.infrastructure,
            )
            % {"n": policy.infrastructure}
        )
    else:
        said.append(_("It is not started again."))
    if job.on_node_lost == NodeLost.WAIT:
        said.append(_("When the node falls silent the run waits until it is back."))
    return " ".join(said)
