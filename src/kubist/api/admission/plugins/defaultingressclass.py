"""DefaultIngressClass: sets the default class on an Ingress without a class."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, Plugin
from kubist.api.admission.plugins.defaultstorageclass import default_class
from kubist.api.resources.context import Context
from kubist.model.meta.object import Object

ANNOTATION = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin):
    resources = ("ingresses.networking.k8s.io",)
    operations = (CREATE,)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        spec = new.setdefault("spec", {})
        if spec.get("ingressClassName") is not None:
            return
        if CLASS_ANNOTATION in (new["metadata"].get("annotations") or {}):
            return
        name = default_class(ctx, "ingressclasses", "networking.k8s.io", (ANNOTATION,))
        if name:
            spec["ingressClassName"] = name
