"""ClusterRoleBinding: grants a ClusterRole to subjects in the whole cluster."""

from __future__ import annotations

from kubist.api.kinds.rbac.common import BindingStrategy

strategy = BindingStrategy()
