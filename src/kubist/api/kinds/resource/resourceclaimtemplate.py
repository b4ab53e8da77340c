"""ResourceClaimTemplate: template of the claims that are created for pods. Immutable."""

from __future__ import annotations

from kubist.api.kinds.resource.claims import default_claim, validate_admin_request, validate_claim
from kubist.api.kinds.shared.template import validate_template_metadata
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object


class ResourceClaimTemplateStrategy(Strategy):
    returns_deleted = True
    lenient_metadata = True
    metadata_rules = ("object",)

    def default(self, obj: Object) -> None:
        default_claim((obj.get("spec") or {}).get("spec") or {})

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is not None:
            errors = _validate(new["spec"])
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            kind = "resource.ResourceClaimTemplateSpec"
            return errors + immutable(_without_empty(new["spec"]), old["spec"], "spec", kind)
        claim = new["spec"].get("spec") or {}
        metadata = new["metadata"]
        errors = validate_admin_request(ctx, claim, metadata.get("namespace", ""))
        errors += objectmeta.validate_create(metadata, namespaced=True, validate_name=self.validate_name)
        return errors + _validate(new["spec"])


def _without_empty(spec: Object) -> Object:
    """Spec without empty lists in metadata. Validation rejects such a list, but it is not a change."""
    metadata = {name: value for name, value in (spec.get("metadata") or {}).items() if value != []}
    return {**spec, "metadata": metadata} if metadata or "metadata" in spec else spec


def _validate(spec: Object) -> Errors:
    errors = validate_template_metadata(spec.get("metadata") or {}, "spec.metadata")
    return errors + validate_claim(spec.get("spec") or {}, "spec.spec")


strategy = ResourceClaimTemplateStrategy()
