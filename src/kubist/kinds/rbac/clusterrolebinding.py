"""ClusterRoleBinding: a ClusterRole given to subjects everywhere."""

from __future__ import annotations

from kubist.kinds.rbac.common import BindingStrategy


class ClusterRoleBindingStrategy(BindingStrategy):
    namespaced = False


strategy = ClusterRoleBindingStrategy()
