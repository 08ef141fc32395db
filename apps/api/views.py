"""What the API answers where no app does."""

from __future__ import annotations

from typing import Any, NoReturn

from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.core.errors import NotFound


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    """404 for everyone: there is nothing here to sign in for."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:
        """Whatever the method."""
        raise NotFound(_hint(request.path))

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise NotFound(_hint(request.path))


def _hint(address: str) -> str:
    if not address.endswith("/"):
        with_slash = f"{address}/"
        try:
            found = resolve(with_slash).url_name
        except Resolver404:
            found = None
        if found not in (None, "nowhere"):
            # A redirect would lose the body of a POST.
            return _("Addresses end with a slash: %(address)s.") % {"address": with_slash}
    return _("There is no such address.")
