"""Who may do what. Every door asks `can()` or takes its objects through `allowed()`; both give the same answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.apps import apps
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.db import transaction
from django.db.models import Exists, Model, Q, QuerySet, Subquery
from guardian.shortcuts import assign_perm, remove_perm
from guardian.utils import get_group_obj_perms_model, get_user_obj_perms_model

from apps.accounts.models import User

M = TypeVar("M", bound=Model)

ACTIONS = ("view", "view_log", "view_data", "export_data", "run", "stop", "edit", "schedule", "manage")

_VIEWER = ("view", "view_log", "view_data")
_OPERATOR = (*_VIEWER, "run", "stop", "export_data", "schedule")
ROLES: dict[str, tuple[str, ...]] = {
    "viewer": _VIEWER,
    "runner": (*_VIEWER, "run"),
    "operator": _OPERATOR,
    "developer": (*_OPERATOR, "edit"),
    "owner": ACTIONS,
    "auditor": (*_VIEWER, "export_data"),
}


def _anchors(model: type[Model]) -> list[tuple[type[Model], str]]:
    """The models that carry rights for `model`, with the lookup that leads to them."""
    paths: dict[str, str] | None = getattr(model, "rights_paths", None)
    if paths is None:
        raise TypeError(f"{model.__name__} carries no rights_paths")
    return [(apps.get_model(label), path) for label, path in paths.items()]


def _permission(anchor: type[Model], action: str, prefix: str = "") -> Q:
    if action not in ACTIONS:
        raise ValueError(f"no such action: {action}")
    return Q(
        **{
            f"{prefix}codename": f"{action}_{anchor._meta.model_name}",
            f"{prefix}content_type__app_label": anchor._meta.app_label,
        }
    )


def _holds(user: User, action: str, anchors: list[tuple[type[Model], str]]) -> Q:
    """One condition: the permission on the whole model, or on an object the row hangs on; own or through a group."""
    everywhere, here = Q(), Q()
    for anchor, path in anchors:
        everywhere |= _permission(anchor, action)
        granted = _permission(anchor, action, "permission__")
        for table in _grants(anchor):
            rows = _by(user, table).filter(granted)
            here |= Q(**{f"{path or 'pk'}__in": Subquery(rows.values("content_object_id"))})
    globally = Permission.objects.filter(everywhere).filter(Q(user=user) | Q(group__user=user))
    return Q(Exists(globally)) | here


def allowed(user: User | AnonymousUser, action: str, model: type[M]) -> QuerySet[M]:
    """The objects of `model` on which `user` may do `action`, as one statement, in no order."""
    if action not in ACTIONS:
        raise ValueError(f"no such action: {action}")
    anchors = _anchors(model)
    rows: QuerySet[M] = model._default_manager.all()
    if not isinstance(user, User) or not user.is_active:
        return rows.none()
    if user.is_superuser:
        return rows
    return rows.filter(_holds(user, action, anchors))


def can(user: User | AnonymousUser, action: str, obj: Model) -> bool:
    return allowed(user, action, type(obj)).filter(pk=obj.pk).exists()


def may_change(user: User | AnonymousUser, model: type[Model], how: str = "change") -> bool:
    """Of what belongs to the whole panel and not to a project (nodes, pools, maintenance): staff with Django's own
    permission on the model, or a superuser. Everybody who is signed in may look at it."""
    if not isinstance(user, User) or not user.is_active:
        return False
    if user.is_superuser:
        return True
    return user.is_staff and user.has_perm(f"{model._meta.app_label}.{how}_{model._meta.model_name}")


def actions_on(user: User | AnonymousUser, obj: Model, actions: Iterable[str] = ACTIONS) -> frozenset[str]:
    """All of `actions` that `user` may do on one object, in one statement: for the buttons of a page."""
    wanted = frozenset(actions)
    anchors = _anchors(type(obj))
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return wanted
    names = {_codename(anchor, action): action for anchor, _path in anchors for action in wanted}
    held = _held_globally(user, names)
    for anchor, path in anchors:
        pk = _key_along(obj, path)
        for rows in _grants(anchor):
            held = held.union(_by(user, rows).filter(content_object_id=pk).values_list(*_CODENAME), all=True)
    return frozenset(names[name] for name in held if name in names)


def _key_along(obj: Model, path: str) -> Any:
    """The key of the anchor that `path` leads to from one object; None when the way ends before."""
    if not path:
        return obj.pk
    *before, last = path.split("__")
    at: Any = obj
    for part in before:
        at = getattr(at, part)
        if at is None:
            return None
    return getattr(at, f"{last}_id")


_CODENAME = ("permission__content_type__app_label", "permission__codename")


def _codename(anchor: type[Model], action: str) -> tuple[str, str]:
    return anchor._meta.app_label, f"{action}_{anchor._meta.model_name}"


def _held_globally(user: User, names: Iterable[tuple[str, str]]) -> QuerySet[Any, Any]:
    codenames = {codename for _label, codename in names}
    mine = Permission.objects.filter(Q(user=user) | Q(group__user=user), codename__in=codenames)
    return mine.values_list("content_type__app_label", "codename")


def _grants(anchor: type[Model]) -> tuple[Any, Any]:
    """The tables of grants on objects of `anchor`, to users and to groups."""
    # guardian takes the class too, its annotation does not say so.
    return get_user_obj_perms_model(anchor), get_group_obj_perms_model(anchor)  # type: ignore[arg-type]


def _by(user: User, table: Any) -> QuerySet[Any]:
    owner = "user" if hasattr(table, "user") else "group__user"
    rows: QuerySet[Any] = table.objects.filter(**{owner: user})
    return rows


def _actions(role_or_action: str) -> tuple[str, ...]:
    if role_or_action in ACTIONS:
        return (role_or_action,)
    return ROLES[role_or_action]


def _check_anchor(obj: Model) -> None:
    if "" not in (getattr(type(obj), "rights_paths", None) or {}).values():
        raise TypeError(f"rights are granted on projects, spiders and jobs, not on {type(obj).__name__}")


@transaction.atomic
def grant(who: User | Group, role_or_action: str, obj: Model) -> None:
    """Give a role or a single action on a project, spider or job; giving twice does nothing."""
    _check_anchor(obj)
    for action in _actions(role_or_action):
        assign_perm(f"{obj._meta.app_label}.{action}_{obj._meta.model_name}", who, obj)


@transaction.atomic
def revoke(who: User | Group, role_or_action: str, obj: Model) -> None:
    _check_anchor(obj)
    for action in _actions(role_or_action):
        remove_perm(f"{obj._meta.app_label}.{action}_{obj._meta.model_name}", who, obj)
