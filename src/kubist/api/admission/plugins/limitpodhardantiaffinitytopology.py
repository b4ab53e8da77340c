"""LimitPodHardAntiAffinityTopology: required pod anti-affinity may only use the topology key of the hostname."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.model.meta.object import Object

HOSTNAME = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        required = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        for term in at(new, required) or ():
            key = term.get("topologyKey", "")
            if key != HOSTNAME:
                what = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key}"
                raise forbidden(ctx, new, f"{what} but only key {HOSTNAME} is allowed")
