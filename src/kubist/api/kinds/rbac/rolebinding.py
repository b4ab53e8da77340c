"""RoleBinding: grants a Role or ClusterRole to subjects within a namespace."""

from __future__ import annotations

from kubist.api.kinds.rbac.common import BindingStrategy

strategy = BindingStrategy()
