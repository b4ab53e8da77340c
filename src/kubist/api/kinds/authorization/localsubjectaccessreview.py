"""LocalSubjectAccessReview: whether a given user may perform an action in one namespace."""

from __future__ import annotations

from kubist.api.kinds.authorization.reviews import AccessReview, local_metadata
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name
from kubist.model.schema.internals import internal_form
from kubist.model.schema.order import in_declared_order

_METADATA = by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


class LocalSubjectAccessReview(AccessReview):
    kind = "LocalSubjectAccessReview"

    def validate(self, body: Object, spec: Object) -> Errors:
        errors = self.validate_spec(spec)
        if local_metadata(body):
            why = "must be empty except for namespace"
            errors.append(fields.invalid("metadata", in_declared_order(_METADATA, body["metadata"]), why))
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is not None and resource.get("namespace", "") != body["metadata"].get("namespace", ""):
            errors.append(
                fields.invalid(
                    "spec.resourceAttributes.namespace",
                    resource.get("namespace", ""),
                    "must match metadata.namespace",
                )
            )
        if path is not None:
            why = "disallowed on this kind of request"
            errors.append(
                fields.invalid(
                    "spec.nonResourceAttributes",
                    internal_form("authorization.NonResourceAttributes", path),
                    why,
                )
            )
        return errors


class LocalSubjectAccessReviewStrategy(Strategy):
    virtual = LocalSubjectAccessReview()


strategy = LocalSubjectAccessReviewStrategy()
