"""Strategy of a custom resource, built from its CRD: it provides everything that a built-in kind defines in
its module. A version has one strategy; objects passed to it are in that version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubist.api.crd import columns
from kubist.api.crd.conversion import Conversion
from kubist.api.crd.scalepaths import scale_spec_errors, scale_status_errors, scale_values
from kubist.api.crd.validation.explain import OldValue
from kubist.api.crd.version import Version
from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Strategy, Update
from kubist.model.meta import objectmeta, status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
"""Error reasons after which no CEL rule is evaluated, because the rule may need the invalid field."""
UNCHECKED = FieldError(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation",
)


class CustomStatus(Update):
    """`/status`: only the status changes."""

    reset_fields = ("metadata", "spec")

    def __init__(self, version: Version) -> None:
        self.version = version

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        found = new.get("status")
        has_status = "status" in new
        managed = new["metadata"].get("managedFields")
        given = new["metadata"].get("resourceVersion")
        new.clear()
        new.update(old)
        metadata = new["metadata"] = dict(old["metadata"])
        if managed is not None:
            metadata["managedFields"] = managed
        else:
            metadata.pop("managedFields", None)
        if given is not None:
            metadata["resourceVersion"] = given
        if has_status:
            new["status"] = found
        else:
            new.pop("status", None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        version = self.version
        errors = objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
        before = OldValue(new, old, version.props)
        if version.status_validator is not None and "status" in new:
            errors += version.status_validator.validate(new["status"], "status", before.key("status"))
        errors += scale_status_errors(version, new)
        found = version.validate_lists(new)
        if found and not version.validate_lists(old):
            errors += found
        return errors + rule_errors(ctx, version, errors, new, old, before)


class CustomScale(Scale):
    """`/scale` at the paths that the CRD names."""

    def __init__(self, scale: Object) -> None:
        self.scale = scale
        self.spec_replicas = scale["specReplicasPath"].removeprefix(".")

    def values(self, obj: Object) -> tuple[int | None, int, str]:
        return scale_values(self.scale, obj)


class CustomStrategy(Strategy):
    """Strategy of one version of a custom resource."""

    unconditional_update = False
    qualified_finalizers = False
    validates_metadata = True

    def __init__(
        self,
        version: Version,
        conversion: Conversion,
        *,
        terminating: bool,
        namespaced: bool,
        deprecation: str,
    ) -> None:
        self.version = version
        self.conversion = conversion
        self.terminating = terminating
        self.deprecation = deprecation  # type: ignore[misc]
        self.namespace_selectable = namespaced
        self.reset_fields = ("status",) if version.status else ()  # type: ignore[misc]
        self.subresources: dict[str, Update | Scale | Create | Connect] = {}  # type: ignore[misc]
        if version.status:
            self.subresources["status"] = CustomStatus(version)
        if version.scale is not None:
            self.subresources["scale"] = CustomScale(version.scale)
        self.selectable = columns.selectable(version.spec)
        self.field_labels = {name: name for name in self.selectable}  # type: ignore[misc]
        self.columns = columns.columns(version.spec)
        """Table columns after the name: `kubist.api.crd.columns.Column`."""

    def decode(self, value: Object) -> tuple[Object, list[str]]:
        """Decodes an object from a client: the pruned object, and a complaint for each unknown field."""
        return self.version.decode(value)

    def adopt(self, merged: Object) -> Object:
        """Completes an object that server-side apply merged. It is typed already, so no field and no null is
        dropped."""
        return self.version.adopt(merged)

    def prune(self, obj: Object) -> None:
        self.version.coerce(obj)

    def default(self, obj: Object) -> None:
        self.version.default(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if self.terminating:
            raise status.forbidden(
                ctx.resource.group,
                ctx.resource.resource,
                obj["metadata"].get("name", ""),
                "create not allowed while custom resource definition is terminating",
            )
        if self.version.status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if self.version.status:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        if any(new.get(key) != old.get(key) for key in new.keys() | old.keys() if key != "metadata"):
            raise_generation(new, old)

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        version = self.version
        errors = objectmeta.validate_create(
            obj["metadata"],
            namespaced=ctx.resource.namespaced,
            validate_name=self.validate_name,
            qualified_finalizers=False,
        )
        if version.validator is not None:
            errors += version.validator.validate(obj)
        errors += scale_spec_errors(version, obj) + scale_status_errors(version, obj)
        errors += version.validate_embedded(obj)
        errors += version.validate_lists(obj)
        return errors + rule_errors(ctx, version, errors, obj, None, None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        version = self.version
        errors = objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
        before = OldValue(new, old, version.props)
        if version.validator is not None:
            errors += version.validator.validate(new, "", before)
        errors += scale_spec_errors(version, new) + scale_status_errors(version, new)
        errors += version.validate_embedded(new)
        found = version.validate_lists(new)
        if found and not version.validate_lists(old):
            errors += found
        return errors + rule_errors(ctx, version, errors, new, old, before)

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return objectmeta.finalizer_warnings(obj["metadata"])

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        return objectmeta.finalizer_warnings(new["metadata"], old["metadata"])

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {name: path.text(obj) for name, path in self.selectable.items()}

    def unsupported_field_label(self, label: str) -> str:
        return f"field label not supported: {label}"

    def convert(self, obj: Object, api_version: str) -> Object:
        """Changes only apiVersion. Field ownership uses this, because it compares objects of other versions
        unpruned."""
        return {**obj, "apiVersion": api_version}


def rule_errors(
    ctx: Context, version: Version, errors: Errors, new: Object, old: Object | None, before: OldValue | None
) -> Errors:
    """Errors of the CEL rules. If the object has an error in BLOCKING, only the UNCHECKED error."""
    rules = version.rules
    if rules is None:
        return []
    if any(error.reason in BLOCKING for error in errors):
        return [UNCHECKED]
    found, warnings = rules.validate(new, old, before)
    for warning in warnings:
        ctx.warn(warning)
    return found
