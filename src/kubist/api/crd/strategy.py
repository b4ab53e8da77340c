"""Strategy of a custom resource, built from its CRD: it provides everything that a built-in kind defines in
its module. A version has one strategy; objects passed to it are in that version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubist.api.crd import columns
from kubist.api.crd.conversion import Conversion
from kubist.api.crd.validation.explain import OldValue
from kubist.api.crd.version import Version
from kubist.api.resources.strategy import Errors, Scale, Strategy, Subresource, Update
from kubist.model.meta import fields, objectmeta, status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation
from kubist.model.patch.values import format_value, go_type

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
    restored_fields = ()
    metadata_rules = ()

    def __init__(self, version: Version) -> None:
        self.version = version

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        new_status = new.get("status")
        has_status = "status" in new
        managed = new["metadata"].get("managedFields")
        resource_version = new["metadata"].get("resourceVersion")
        new.clear()
        new.update(old)
        metadata = new["metadata"] = dict(old["metadata"])
        if managed is not None:
            metadata["managedFields"] = managed
        else:
            metadata.pop("managedFields", None)
        if resource_version is not None:
            metadata["resourceVersion"] = resource_version
        if has_status:
            new["status"] = new_status
        else:
            new.pop("status", None)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        version = self.version
        errors = objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
        before = OldValue(new, old, version.props)
        if version.status_validator is not None and "status" in new:
            errors += version.status_validator.validate(new["status"], "status", before.key("status"))
        errors += _scale_status_errors(version, new)
        errors += version.validate_lists(new, old)
        return errors + rule_errors(ctx, version, errors, new, old, before)


class CustomScale(Scale):
    """`/scale` at the paths that the CRD names."""

    def __init__(self, scale: Object) -> None:
        self.scale = scale
        self.spec_replicas = scale["specReplicasPath"].removeprefix(".")

    def values(self, obj: Object) -> tuple[int | None, int, str]:
        return _scale_values(self.scale, obj)


class CustomStrategy(Strategy):
    """Strategy of one version of a custom resource."""

    unconditional_update = False
    qualified_finalizers = False
    validates_metadata = True
    metadata_rules = ()

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
        self.deprecation = deprecation
        self.namespace_selectable = namespaced
        self.reset_fields = ("status",) if version.status else ()
        self.subresources: dict[str, Subresource] = {}
        if version.status:
            self.subresources["status"] = CustomStatus(version)
        if version.scale is not None:
            self.subresources["scale"] = CustomScale(version.scale)
        self.selectable = columns.selectable(version.spec)
        self.field_labels = {name: name for name in self.selectable}

    def default(self, obj: Object) -> None:
        self.version.default(obj)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is not None:
            if any(new.get(key) != old.get(key) for key in new.keys() | old.keys() if key != "metadata"):
                raise_generation(new, old)
            return
        if self.terminating:
            raise status.forbidden(
                ctx.resource.group,
                ctx.resource.resource,
                new["metadata"].get("name", ""),
                "create not allowed while custom resource definition is terminating",
            )
        if self.version.status:
            new.pop("status", None)
        new["metadata"]["generation"] = 1

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        version, before = self.version, None
        if old is None:
            errors = objectmeta.validate_create(
                new["metadata"],
                namespaced=ctx.resource.namespaced,
                validate_name=self.validate_name,
                qualified_finalizers=False,
            )
        else:
            errors = objectmeta.validate_update(new["metadata"], old["metadata"], qualified_finalizers=False)
            before = OldValue(new, old, version.props)
        if version.validator is not None:
            errors += version.validator.validate(new, "", before)
        errors += _scale_spec_errors(version, new) + _scale_status_errors(version, new)
        errors += version.validate_embedded(new)
        errors += version.validate_lists(new, old)
        return errors + rule_errors(ctx, version, errors, new, old, before)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return objectmeta.finalizer_warnings(new["metadata"], old["metadata"] if old is not None else None)

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
    """Errors of the CEL rules. If the object has an error in BLOCKING, only the UNCHECKED error is returned."""
    rules = version.rules
    if rules is None:
        return []
    if any(error.reason in BLOCKING for error in errors):
        return [UNCHECKED]
    violations, warnings = rules.validate(new, old, before)
    for warning in warnings:
        ctx.warn(warning)
    return violations


_MAX_REPLICAS = (1 << 31) - 1


def _scale_spec_errors(version: Version, obj: Object) -> Errors:
    return _replica_errors(obj, version.scale["specReplicasPath"]) if version.scale is not None else []


def _scale_status_errors(version: Version, obj: Object) -> Errors:
    if version.scale is None:
        return []
    errors = _replica_errors(obj, version.scale["statusReplicasPath"])
    selector = version.scale.get("labelSelectorPath")
    if selector:
        try:
            _value_at(obj, selector, str)
        except _Unfit as error:
            errors.append(fields.invalid(selector, "", str(error)))
    return errors


def _replica_errors(obj: Object, path: str) -> Errors:
    try:
        count = _value_at(obj, path, int)
    except _Unfit as error:
        return [fields.invalid(path, 0, str(error))]
    if count is None:
        return []
    if count < 0:
        return [fields.invalid(path, count, "should be a non-negative integer")]
    if count > _MAX_REPLICAS:
        return [fields.invalid(path, count, f"should be less than or equal to {_MAX_REPLICAS}")]
    return []


def _scale_values(scale: Object, obj: Object) -> tuple[int | None, int, str]:
    """spec.replicas (None if absent), status.replicas (0 if absent) and the label selector ("" if absent).
    Raises a 500 error if a value has the wrong type."""
    try:
        replicas = _value_at(obj, scale["specReplicasPath"], int)
        status_replicas = _value_at(obj, scale["statusReplicasPath"], int)
        path = scale.get("labelSelectorPath")
        selector = _value_at(obj, path, str) if path else None
    except _Unfit as error:
        raise status.plain_error(str(error)) from None
    return None if replicas is None else _int32(replicas), _int32(status_replicas or 0), selector or ""


def _int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class _Unfit(Exception):
    """The value at a path has the wrong type."""


_TYPES = {dict: "map[string]interface{}", int: "int64", str: "string"}


def _value_at(obj: Object, path: str, kind: type) -> Any:
    """The value at a path, or None if the path does not exist. Raises `_Unfit` unless its type is exactly `kind`."""
    parts = path.removeprefix(".").split(".")
    value: Any = obj
    for depth, part in enumerate(parts, 1):
        if value is None:
            return None
        _expect(value, dict, parts[:depth])
        if part not in value:
            return None
        value = value[part]
    _expect(value, kind, parts)
    return value


def _expect(value: Any, kind: type, parts: list[str]) -> None:
    if type(value) is not kind:
        what = "<nil>" if value is None else go_type(value)
        where = "." + ".".join(parts)
        raise _Unfit(
            f"{where} accessor error: {format_value(value)} is of the type {what}, expected {_TYPES[kind]}"
        )
