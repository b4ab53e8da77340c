"""Tables of RoleBindings and ClusterRoleBindings."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, wide
from kubist.api.tables.shared import part
from kubist.model.meta.object import Object


def _binding(obj: Object) -> list[Cell]:
    ref = part(obj, "roleRef")
    subjects = obj.get("subjects") or ()
    accounts = [
        f"{subject.get('namespace', '')}/{subject.get('name', '')}"
        for subject in subjects
        if subject.get("kind") == "ServiceAccount"
    ]
    return [
        name_of(obj),
        f"{ref.get('kind', '')}/{ref.get('name', '')}",
        age(obj),
        *(
            ", ".join(s.get("name", "") for s in subjects if s.get("kind") == kind)
            for kind in ("User", "Group")
        ),
        ", ".join(accounts),
    ]


_BINDING = Table(
    (
        NAME,
        Column("Role", "Role of the binding."),
        AGE,
        wide("Users", "Users that have the role."),
        wide("Groups", "Groups that have the role."),
        wide("ServiceAccounts", "Service accounts that have the role."),
    ),
    _binding,
)
TABLES = {"RoleBinding": _BINDING, "ClusterRoleBinding": _BINDING}
