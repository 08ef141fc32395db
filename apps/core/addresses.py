"""Where to send a person back to."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def where_from(request: HttpRequest, otherwise: str = "/") -> str:
    """The page a button was pressed on, by its form's `next` or the browser's word; never another site."""
    target = request.POST.get("next") or request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        return otherwise
    parts = urlsplit(target)
    # "//other.site" would be a path here and another site in the answer.
    return "/" + parts.path.lstrip("/\\") + (f"?{parts.query}" if parts.query else "")
