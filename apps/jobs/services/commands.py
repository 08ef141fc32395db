"""Arguments, variables and calls of a job, checked when they are saved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from django.utils.translation import gettext as _

from apps.core.errors import PanelError
from apps.core.safe_http import target_of
from apps.core.schema_forms import secret_names
from apps.core.templating import check, each_text, is_template, parse
from apps.jobs.models import Job
from apps.jobs.policies import Faults
from apps.jobs.selectors import version_of
from apps.jobs.services.rendering.calling import allowed_hosts
from apps.jobs.services.rendering.filling import argument_fault
from apps.jobs.services.template_names import known_in_calls, known_in_command, samples
from apps.spiders.models import Spider

MOST_ARGUMENTS, MOST_CALLS, MOST_HEADERS = 100, 5, 20
MAX_BODY, MAX_ALL_ARGUMENTS = 16 * 1024, 512 * 1024
_CALL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_PARTS = frozenset({"method", "url", "headers", "secret_headers", "body"})
_METHODS = ("GET", "POST")
# What the connection itself is made of.
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te", "upgrade", "expect"}
)


def take_command(job: Job, changes: Mapping[str, Any], *, now: datetime, faults: Faults) -> None:
    """Calls first: what is in the rest may name them."""
    version = version_of(job)
    schema = version.parameter_schema if version else {}
    if "calls" in changes:
        job.calls = _checked_calls(job, schema, changes["calls"], faults)
    if "arguments" in changes:
        job.arguments = _checked_arguments(job, changes["arguments"], faults)
    if changes.keys() & {"calls", "arguments", "env"} and not faults.keys() & {"calls", "arguments", "env"}:
        _try(job, schema, now, faults)


def _checked_arguments(job: Job, given: Any, faults: Faults) -> list[str]:
    if not isinstance(given, list | tuple) or any(not isinstance(text, str) for text in given):
        faults["arguments"] = [_("Arguments are a list of texts.")]
        return []
    if given and job.spider.kind != Spider.Kind.COMMAND:
        faults["arguments"] = [_("Only a spider that is a command takes arguments: give this one parameters.")]
        return []
    if len(given) > MOST_ARGUMENTS:
        faults["arguments"] = [_("At most %(limit)d arguments are allowed.") % {"limit": MOST_ARGUMENTS}]
        return []
    said = [_numbered(number, fault) for number, text in enumerate(given, 1) if (fault := argument_fault(text))]
    if not said and sum(len(text.encode()) for text in given) > MAX_ALL_ARGUMENTS:
        said = [_("Arguments have at most %(kib)d KiB together.") % {"kib": MAX_ALL_ARGUMENTS // 1024}]
    if said:
        faults["arguments"] = said
    return list(given)


def _numbered(number: int, sentence: str) -> str:
    return _("Argument %(number)d: %(sentence)s") % {"number": number, "sentence": sentence}


def _try(job: Job, schema: Mapping[str, Any], now: datetime, faults: Faults) -> None:
    """Every template names what there is, and can be filled in with samples."""
    tried = samples(job, known_in_command(job, schema), now=now)

    def fault(text: str) -> str:
        try:
            tried(text)
        except PanelError as error:
            return error.message
        return ""

    said = [
        _numbered(n, wrong) for n, text in enumerate(job.arguments, 1) if is_template(text) and (wrong := fault(text))
    ]
    if said:
        faults["arguments"] = said
    said = [f"{name}: {wrong}" for name, text in job.env.items() if is_template(text) and (wrong := fault(text))]
    if said:
        faults["env"] = said


# -- calls ------------------------------------------------------------------------------------------------------------


def _checked_calls(job: Job, schema: Mapping[str, Any], given: Any, faults: Faults) -> dict[str, Any]:
    if not isinstance(given, Mapping) or any(not isinstance(call, Mapping) for call in given.values()):
        faults["calls"] = [_('Calls are an object: for each name an object with "url", and what else it needs.')]
        return {}
    if len(given) > MOST_CALLS:
        faults["calls"] = [_("At most %(limit)d calls are allowed.") % {"limit": MOST_CALLS}]
        return {}
    said: list[str] = []
    for name, call in given.items():
        if not isinstance(name, str) or not _CALL_NAME.match(name):
            said.append(_("A call's name has 1 to 64 of A-Z, a-z, 0-9, _ and -, and begins with a letter."))
            continue
        said += [f"{name}: {sentence}" for sentence in _call_faults(job, schema, call)]
    if said:
        faults["calls"] = list(dict.fromkeys(said))
    return {str(name): dict(call) for name, call in given.items()}


def _call_faults(job: Job, schema: Mapping[str, Any], call: Mapping[str, Any]) -> list[str]:
    if unknown := sorted(map(str, call.keys() - _PARTS)):
        return [_("A call has no “%(name)s”.") % {"name": unknown[0][:40]}]
    said = []
    if call.get("method", "GET") not in _METHODS:
        said.append(_("The method of a call is GET or POST."))
    if "body" in call and call.get("method", "GET") != "POST":
        said.append(_("Only a POST has a body."))
    if len(orjson.dumps(call.get("body"), default=str)) > MAX_BODY:
        said.append(_("The body of a call has at most %(kib)d KiB.") % {"kib": MAX_BODY // 1024})
    said += _url_faults(call.get("url"))
    said += _header_faults(call, secret_names(schema))
    known = known_in_calls(job)
    for _place, text in each_text({name: call.get(name) for name in ("url", "headers", "body")}):
        said += check(text, known)
    return said


def _url_faults(url: Any) -> list[str]:
    if not isinstance(url, str) or not url:
        return [_("A call needs a “url”.")]
    try:
        # No template decides on the host: what comes from outside must not choose where secrets are sent.
        plain = "".join(part if isinstance(part, str) else "x" for part in parse(url).parts)
        first = parse(url).parts[0]
        if not isinstance(first, str) or target_of(first).shown != target_of(plain).shown or _ends_in_host(first, url):
            return [_("In an address templates stand behind the host, in path or query.")]
        if not allowed_hosts().takes(target := target_of(plain)):
            return [
                _("%(host)s is not among the hosts that may be called. An administrator can list it.")
                % {"host": target.shown}
            ]
    except PanelError as error:
        return [error.message]
    return []


def _ends_in_host(first: str, url: str) -> bool:
    return first != url and not re.search(r"[/?#]", first.partition("://")[2])


def _header_faults(call: Mapping[str, Any], secrets: frozenset[str]) -> list[str]:
    headers, secret = call.get("headers") or {}, call.get("secret_headers") or {}
    if not all(isinstance(each, Mapping) and len(each) <= MOST_HEADERS for each in (headers, secret)):
        return [_("Headers are an object with a text for each name, at most %(limit)d.") % {"limit": MOST_HEADERS}]
    said = []
    for name, text in [*headers.items(), *secret.items()]:
        if not isinstance(name, str) or not _HEADER.match(name) or name.lower() in _OURS:
            said.append(_("A header cannot be called “%(name)s”.") % {"name": str(name)[:40]})
        elif not isinstance(text, str) or not text.isascii() or not text.isprintable():
            said.append(_("A header is one line of ASCII letters."))
    missing = [str(name)[:64] for name in secret.values() if name not in secrets]
    return said + [
        _("The spider has no secret parameter “%(name)s” for a header.") % {"name": name} for name in missing
    ]
