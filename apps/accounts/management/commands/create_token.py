"""Make an API token: `manage.py create_token USER --name N`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.accounts.models import ApiToken, User
from apps.accounts.services import create_token
from apps.core.errors import PanelError


class Command(BaseCommand):
    help = "Make an API token for a user. The token alone is on the last line of the output and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", required=True, help="what the token is for; unique for the user")
        parser.add_argument("--scope", default=ApiToken.Scope.WRITE.value, choices=ApiToken.Scope.values)
        parser.add_argument("--days", type=int, default=90, help="days until it expires, 0 for never (default 90)")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no user named {options['username']}.")
        try:
            ttl = timedelta(days=options["days"]) if options["days"] else None
            token, text = create_token(
                user=user, name=options["name"], scope=options["scope"], now=timezone.now(), ttl=ttl
            )
        except OverflowError as error:
            raise CommandError("That many days are too many.") from error
        except PanelError as error:
            raise CommandError(error.message) from error
        ends = f"expires {token.expiry:%Y-%m-%d}" if token.expiry else "never expires"
        self.stderr.write(f"Token “{token.name}” of {user.get_username()}, scope {token.scope}, {ends}:")
        self.stdout.write(text)
