"""The sidebars offer every list there is, to those who may open it."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.panel.navigation import ADMIN_GROUPS, ENTRIES
from tests.factories import AdminFactory, UserFactory

pytestmark = pytest.mark.django_db


def signed_in(user: object) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")  # type: ignore[arg-type]
    return client


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.view)
def test_each_entry_leads_to_its_page_and_is_marked_there(entry):
    address = reverse(entry.view)
    text = signed_in(AdminFactory()).get(address).content.decode()
    if entry.area != "admin":
        assert re.search(rf'<a[^>]*href="{re.escape(address)}"[^>]*aria-current="page"', text), text


def test_the_admin_is_offered_to_staff_only():
    assert "/admin/" not in signed_in(UserFactory()).get("/runs/").content.decode()


def test_the_admins_sidebar_offers_every_model_of_ours():
    offered = {label for _caption, models in ADMIN_GROUPS for label, _symbol in models}
    there = {model._meta.label_lower for model in admin.site._registry}
    assert there == offered
    text = signed_in(AdminFactory()).get("/admin/").content.decode()
    for label in offered:
        assert reverse(f"admin:{label.replace('.', '_')}_changelist") in text
