"""Columns of RoleBindings and ClusterRoleBindings."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.tables.columns import AGE, NAME, Column, Table, part, wide
from kubist.model.meta.object import Object


def _role(binding: Object) -> str:
    ref = part(binding, "roleRef")
    return f"{ref.get('kind', '')}/{ref.get('name', '')}"


def _subjects(kind: str) -> Callable[[Object], str]:
    """Function for the names of the subjects of a kind."""
    return lambda binding: ", ".join(
        subject.get("name", "") for subject in binding.get("subjects") or () if subject.get("kind") == kind
    )


def _service_accounts(binding: Object) -> str:
    return ", ".join(
        f"{subject.get('namespace', '')}/{subject.get('name', '')}"
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount"
    )


_BINDING = Table(
    NAME,
    Column("Role", "Role of the binding.", cell=_role),
    AGE,
    wide("Users", "Users that have the role.", cell=_subjects("User")),
    wide("Groups", "Groups that have the role.", cell=_subjects("Group")),
    wide("ServiceAccounts", "Service accounts that have the role.", cell=_service_accounts),
)
TABLES = {"RoleBinding": _BINDING, "ClusterRoleBinding": _BINDING}
