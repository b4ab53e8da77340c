"""TaintNodesByCondition: taints a new node as not ready, until a controller removes the taint."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Plugin):
    resources = ("nodes",)
    operations = (CREATE,)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        taints = new.setdefault("spec", {}).setdefault("taints", [])
        if not any(t.get("key") == TAINT["key"] and t.get("effect") == TAINT["effect"] for t in taints):
            taints.append(dict(TAINT))
