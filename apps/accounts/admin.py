"""People and tokens in the admin, and how the other apps' admins ask for rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, Permission
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from guardian.admin import (
    AdminGroupObjectPermissionsForm,
    AdminUserObjectPermissionsForm,
    GroupManage,
    GuardedModelAdminMixin,
    UserManage,
)
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from apps.accounts import services
from apps.accounts.models import ApiToken, User
from apps.accounts.rights import ACTIONS, allowed, can
from apps.core.admin import SuperuserOnly

admin.site.unregister(Group)

LONGEST_KEY = 18

ACTION_NAMES = {
    "view": _("See it and its runs"),
    "view_log": _("Read logs"),
    "view_data": _("Look at data"),
    "export_data": _("Download data"),
    "run": _("Run"),
    "stop": _("Stop runs"),
    "edit": _("Change"),
    "schedule": _("Schedule"),
    "manage": _("Manage rights"),
}


def key_of(text: str) -> int:
    """The key in an address of the admin; 404 for what cannot be one."""
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_KEY):
        raise Http404
    return int(text)


class RightsAdmin(ModelAdmin):
    """Objects with rights: the same question as at every other door, asked through `apps.accounts.rights`.

    `change_right` and `delete_right` name the action that changing and deleting need; empty means nobody does it here.
    """

    change_right: ClassVar[str] = ""
    delete_right: ClassVar[str] = ""
    # A list must not count all its rows.
    paginator = InfinitePaginator
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        ordering = self.get_ordering(request)
        rows = allowed(request.user, "view", self.model)
        return rows.order_by(*ordering) if ordering else rows

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Only what the list's own filters ask: by any other column one could search what one may not see."""
        values = value if isinstance(value, list | tuple) else (value,)
        field, _, how = lookup.partition("__")
        ours = field in self.get_list_filter(request) and how in ("", "exact", "isnull")
        return ours and not any("\0" in str(each) for each in values)

    def _may(self, request: HttpRequest, action: str, obj: Model | None) -> bool:
        if not action or not request.user.is_active or not request.user.is_staff:
            return False
        # Without an object Django asks whether to offer the list at all; the list itself holds only what is allowed.
        return True if obj is None else can(request.user, action, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may(request, "view", None)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, "view", obj)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, self.change_right, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, self.delete_right, obj)


class ReadOnlyAdmin(RightsAdmin):
    """To look at: these rows are written by services only."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*(field.name for field in self.model._meta.fields), *super().get_readonly_fields(request, obj)]


class _ActionChoices:
    """The actions that mean something here, in words, instead of every permission Django knows of the model."""

    obj: Model

    def get_obj_perms_field_choices(self) -> list[tuple[str, Any]]:
        return [(f"{action}_{self.obj._meta.model_name}", ACTION_NAMES[action]) for action in ACTIONS]

    def get_obj_perms_field_widget(self) -> forms.Widget:
        return UnfoldAdminCheckboxSelectMultipleWidget()


class UserRightsForm(_ActionChoices, AdminUserObjectPermissionsForm):
    pass


class GroupRightsForm(_ActionChoices, AdminGroupObjectPermissionsForm):
    pass


class WhichUserForm(UserManage):
    user = forms.CharField(
        label=_("User name"), max_length=200, error_messages=UserManage.base_fields["user"].error_messages
    )


class WhichGroupForm(GroupManage):
    group = forms.CharField(
        label=_("Group"), max_length=150, error_messages=GroupManage.base_fields["group"].error_messages
    )


class AnchorAdmin(GuardedModelAdminMixin, RightsAdmin):
    """Objects that rights are granted on; who may `manage` one may grant them."""

    def get_obj_perms_base_context(self, request: HttpRequest, obj: Model) -> dict[str, Any]:
        """With what the admin's own page, which these pages extend, asks of a context."""
        asked = {"add": False, "change": True, "is_popup": False, "save_as": False, "show_save": False}
        rights = {"has_add_permission": False, "has_view_permission": True, "has_delete_permission": False}
        return {
            **super().get_obj_perms_base_context(request, obj),
            **asked,
            **rights,
            "has_editable_inline_admin_formsets": False,
            "model_perms": [
                Permission(name=ACTION_NAMES[action], codename=f"{action}_{obj._meta.model_name}") for action in ACTIONS
            ],
            # The object itself, as the change page has it; guardian gives its name.
            "original": obj,
        }

    def get_obj_perms_user_select_form(self, request: HttpRequest) -> type[forms.Form]:
        return WhichUserForm

    def get_obj_perms_group_select_form(self, request: HttpRequest) -> type[forms.Form]:
        return WhichGroupForm

    def get_obj_perms_manage_user_form(self, request: HttpRequest) -> type[forms.Form]:
        return UserRightsForm

    def get_obj_perms_manage_group_form(self, request: HttpRequest) -> type[forms.Form]:
        return GroupRightsForm

    def _managed(self, view: Callable[..., HttpResponse], request: HttpRequest, pk: str, *args: Any) -> HttpResponse:
        key = key_of(pk)
        if not allowed(request.user, "manage", self.model).filter(pk=key).exists():
            raise Http404
        # The very key that was asked about, not its text: the two must not be read as different objects.
        return view(request, str(key), *args)

    def obj_perms_manage_view(self, request: HttpRequest, object_pk: str) -> HttpResponse:
        return self._managed(super().obj_perms_manage_view, request, object_pk)

    def obj_perms_manage_user_view(self, request: HttpRequest, object_pk: str, user_id: str) -> HttpResponse:
        return self._managed(super().obj_perms_manage_user_view, request, object_pk, user_id)

    def obj_perms_manage_group_view(self, request: HttpRequest, object_pk: str, group_id: str) -> HttpResponse:
        return self._managed(super().obj_perms_manage_group_view, request, object_pk, group_id)


@admin.register(User)
class UserAdmin(SuperuserOnly, BaseUserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "email", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    fieldsets = (
        *(BaseUserAdmin.fieldsets or ()),
        (_("Preferences"), {"fields": ("language", "theme", "time_zone")}),
    )


@admin.register(Group)
class GroupAdmin(SuperuserOnly, BaseGroupAdmin, ModelAdmin):
    pass


@admin.register(ApiToken)
class ApiTokenAdmin(SuperuserOnly, ModelAdmin):
    """To look at and to revoke; tokens are made where their text can be shown once."""

    list_display = ("name", "user", "scope", "created", "expiry", "last_used_at")
    list_filter = ("scope",)
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    fields = ("name", "user", "scope", "token_key", "created", "expiry", "last_used_at")
    readonly_fields = fields
    ordering = ("user__username", "name")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        services.revoke_token(token=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            services.revoke_token(token=token)
