"""ResourceClaimTemplate: what claims that are made for pods look like. It never changes."""

from __future__ import annotations

from kubist.context import Context
from kubist.kinds.resource.claims import default_claim, validate_admin_request, validate_claim
from kubist.kinds.shared.labels import validate_labels
from kubist.kinds.shared.update import immutable
from kubist.kinds.strategy import Errors, Object, Strategy
from kubist.meta import fields, objectmeta

_TEMPLATE_METADATA = ("annotations", "labels")


class ResourceClaimTemplateStrategy(Strategy):
    returns_deleted = True

    def default(self, obj: Object) -> None:
        default_claim((obj.get("spec") or {}).get("spec") or {})

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        claim = obj["spec"].get("spec") or {}
        namespace = obj["metadata"].get("namespace", "")
        return validate_admin_request(ctx, claim, namespace) + _validate(obj["spec"])

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_create(
            new["metadata"], namespaced=True, validate_name=self.validate_name
        )
        errors += _validate(new["spec"])
        errors += objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + immutable(new["spec"], old["spec"], "spec")


def _validate(spec: Object) -> Errors:
    metadata = spec.get("metadata") or {}
    path = "spec.metadata"
    errors = objectmeta.validate_annotations(metadata.get("annotations") or {}, f"{path}.annotations")
    errors += validate_labels(metadata.get("labels"), f"{path}.labels")
    errors += [
        fields.forbidden(f"{path}.{name}", "cannot be set")
        for name, value in metadata.items()
        if value and name not in _TEMPLATE_METADATA
    ]
    return errors + validate_claim(spec.get("spec") or {}, "spec.spec")


strategy = ResourceClaimTemplateStrategy()
