"""PodTopologyLabels: copies the zone and region labels of the node to its pods."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    resources = ("pods", "pods/binding")
    operations = (CREATE,)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        if ctx.subresource:
            target = new.get("target") or {}
            name = target.get("name", "") if target.get("kind") == "Node" else ""
        else:
            name = new["spec"].get("nodeName", "")
        node = ctx.objects.get("nodes", name) if name else None
        if node is None:
            return
        node_labels = node["metadata"].get("labels") or {}
        copied = {label: node_labels[label] for label in LABELS if label in node_labels}
        if copied:
            new["metadata"]["labels"] = {**(new["metadata"].get("labels") or {}), **copied}
