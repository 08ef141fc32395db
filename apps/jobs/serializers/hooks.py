"""Webhooks as the API shows and takes them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.core.rest import PageQuery, Strict, page_of
from apps.jobs.models import Hook


class HookSerializer(Strict):
    """A webhook; what opens it is not kept and never shown again."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(
        choices=Hook.Kind.choices,
        default=Hook.Kind.HMAC.value,
        help_text="`hmac`: the body is signed, X-Signature-256: sha256=<hex>. `url`: who knows the address may call.",
    )
    mapping = serializers.DictField(
        child=serializers.CharField(max_length=200),
        default=dict,
        help_text='Where parameters stand in the body: {"pages": "event.count"}. Empty: by their own names.',
    )
    per_minute = serializers.IntegerField(default=60, min_value=1, max_value=6000, help_text="Most calls a minute.")
    begins_with = serializers.CharField(source="token_prefix", read_only=True, help_text="Of the token.")
    created_by = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(read_only=True)
    last_used_at = serializers.DateTimeField(read_only=True, allow_null=True, help_text="To the minute.")
    revoked_at = serializers.DateTimeField(read_only=True, allow_null=True)

    def get_created_by(self, hook: Hook) -> str | None:
        return hook.created_by.get_username() if hook.created_by else None


class MadeHookSerializer(HookSerializer):
    """With what opens it: shown this once only."""

    url = serializers.URLField(read_only=True, help_text="POST to it. Shown this once only.")
    key = serializers.CharField(
        read_only=True, allow_null=True, help_text="Of the signatures; null for `url`. Shown this once only."
    )

    def to_representation(self, made: Any) -> dict[str, Any]:
        hook, url, key = made
        return {**HookSerializer(hook).data, "url": url, "key": key or None}


class HookQuery(PageQuery):
    """Pages of webhooks."""


HookPage = page_of(HookSerializer, "HookPage")
