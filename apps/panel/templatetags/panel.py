"""Template tags of the pages: icons, states, times and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django import template
from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.templatetags.static import static
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.panel.marks import mark_of

register = template.Library()
SPRITE = "vendor/tabler-icons-3.52.0.min.svg"


@register.simple_tag
def icon(name: str, css: str = "") -> SafeString:
    """A decorative icon of the sprite; the word beside it carries the meaning."""
    return _icon(name.removeprefix("icon:"), css)


@cache
def _icon(name: str, css: str) -> SafeString:
    """There are few of them and a list draws hundreds."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        css,
        static(SPRITE),
        name,
    )


@register.simple_tag
def status(state: str, label: str = "") -> SafeString:
    """The badge of a run's state: `{% status run.state run.get_state_display %}`."""
    mark = mark_of(state)
    return format_html(
        '<span class="claw-status claw-tone-{}" data-state="{}">{}<span>{}</span></span>',
        mark.tone,
        state,
        icon(mark.icon, "claw-spin" if mark.spins else ""),
        label or state,
    )


@register.simple_tag
def mark(state: str) -> SafeString:
    """Only the icon of a state, where the word is not far."""
    return icon(mark_of(state).icon)


@register.simple_tag
def drawn_mark(state: str) -> SafeString:
    """The same inside a drawing, where an icon has the size it is given."""
    name = mark_of(state).icon.removeprefix("icon:")
    return format_html('<use class="claw-drawn-icon" href="{}#{}" width="16" height="16"></use>', static(SPRITE), name)


@register.filter
def tone(state: str) -> str:
    """The colour name of a state, for charts."""
    return mark_of(state).tone


@register.filter
def spell_duration(value: timedelta | float | None) -> str:
    """`42 s`, `2 min 11 s`, `1 h 05 min`, `3 d 4 h`; panel.js spells running ones the same way."""
    if value is None:
        return "—"
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    seconds = max(0, int(seconds))
    if seconds < 60:
        return _("%(s)d s") % {"s": seconds}
    if seconds < 3600:
        return _("%(min)d min %(s)02d s") % {"min": seconds // 60, "s": seconds % 60}
    if seconds < 86400:
        return _("%(h)d h %(min)02d min") % {"h": seconds // 3600, "min": seconds % 3600 // 60}
    return _("%(d)d d %(h)d h") % {"d": seconds // 86400, "h": seconds % 86400 // 3600}


@register.simple_tag
def elapsed(started: datetime | None, finished: datetime | None = None) -> SafeString | str:
    """How long something took; while it goes on the page counts up by itself."""
    if started is None:
        return "—"
    if finished is not None:
        return spell_duration(finished - started)
    return format_html(
        '<span class="claw-ticks" data-since="{}">{}</span>',
        started.isoformat(),
        spell_duration(timezone.now() - started),
    )


@register.simple_tag
def countdown(moment: datetime | None) -> SafeString | str:
    """The time until then; the page counts down by itself."""
    if moment is None:
        return "—"
    left = max(timedelta(), moment - timezone.now())
    return format_html('<span class="claw-ticks" data-until="{}">{}</span>', moment.isoformat(), spell_duration(left))


def _spell_age(seconds: float) -> str:
    if seconds < 60:
        return _("just now")
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if hours < 1:
        return ngettext("%(n)d minute ago", "%(n)d minutes ago", minutes) % {"n": minutes}
    if days < 1:
        return ngettext("%(n)d hour ago", "%(n)d hours ago", hours) % {"n": hours}
    return ngettext("%(n)d day ago", "%(n)d days ago", days) % {"n": days}


@register.simple_tag
def ago(moment: datetime | None, empty: str = "—") -> SafeString | str:
    """Relative within a week, absolute after; the exact time with its zone on hover."""
    if moment is None:
        return empty
    local = timezone.localtime(moment)
    exact = f"{date_format(local, 'Y-m-d H:i:s')} {local.tzname()}"
    seconds = (timezone.now() - moment).total_seconds()
    if not 0 <= seconds < 7 * 86400:
        return format_html(
            '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, date_format(local, "Y-m-d H:i")
        )
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>', moment.isoformat(), exact, _spell_age(seconds)
    )


@register.simple_tag
def instant(moment: datetime | None, empty: str = "—") -> SafeString | str:
    """An absolute time with seconds."""
    if moment is None:
        return empty
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        local.tzname(),
        date_format(local, "Y-m-d H:i:s"),
    )


@register.simple_tag
def clock(moment: datetime, where: str = "") -> SafeString:
    """A time with its day of the week: as clocks of its own zone show it, or (`"here"`) those of the reader."""
    shown = timezone.localtime(moment) if where == "here" else moment
    form = "D Y-m-d H:i:s" if shown.second else "D Y-m-d H:i"
    exact = f"{date_format(moment.astimezone(UTC), 'Y-m-d H:i:s')} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, date_format(shown, form))


@register.filter
def megabytes(value: float | None) -> str:
    """Bytes as MB or GB, the units limits are set in."""
    if value is None:
        return "—"
    size = float(value) / 1024 / 1024
    if size >= 1024:
        return f"{size / 1024:.1f} GB"
    return f"{size:.0f} MB" if size >= 10 or not size else f"{size:.1f} MB"


@register.simple_tag(takes_context=True)
def query(context: Mapping[str, Any], **changes: Any) -> str:
    """The address's query with keys set or, when None or empty, dropped: `{% query sort="-items" after=None %}`."""
    request: HttpRequest = context["request"]
    params: QueryDict = request.GET.copy()
    for key, value in changes.items():
        if value is None or value == "":
            params.pop(key, None)
        elif isinstance(value, (list, tuple)):
            params.setlist(key, [str(each) for each in value])
        else:
            params[key] = str(value)
    return "?" + params.urlencode()


@register.filter
def language_name(code: str) -> str:
    """A language in its own words, so that its speakers find it."""
    return {"en": "English", "zh-hans": "简体中文"}.get(code) or str(str(dict(settings.LANGUAGES).get(code, code)))


@register.simple_tag
def words() -> SafeString:
    """The words panel.js needs, the same as those of these tags."""
    return json_script(
        {
            "s": _("%(s)d s"),
            "min": _("%(min)d min %(s)02d s"),
            "h": _("%(h)d h %(min)02d min"),
            "d": _("%(d)d d %(h)d h"),
            "copied": _("Copied"),
        },
        "claw-words",
    )


@register.simple_tag(takes_context=True)
def query_without(context: Mapping[str, Any], key: str) -> str:
    """The address's query without one key, from its first page."""
    return query(context, **{key: None, "after": None})
