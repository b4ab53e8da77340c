"""PersistentVolumeClaim: a request for storage. The spec is immutable, except size and volumeAttributesClassName of
a bound claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.core.persistentvolume import STORAGE_CLASS_ANNOTATION, storage_class_warning
from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.core.podspec.volume_claims import (
    claim_spec_warnings,
    default_claim_spec,
    validate_claim_spec,
)
from kubist.api.kinds.shared.resource_names import is_native, validate_quantity
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.model.meta import names
from kubist.model.meta.fields import forbidden, invalid, not_supported
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.schema.internals import difference

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

Spec = dict[str, Any]

RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


class PersistentVolumeClaimStatus(Status):
    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_status(new["status"])


class PersistentVolumeClaimStrategy(Strategy):
    returns_deleted = True
    reset_fields = ("status",)
    first_status: ClassVar = {"phase": "Pending"}
    metadata_rules = ("update", "object")
    subresources: Mapping[str, Subresource] = {"status": PersistentVolumeClaimStatus()}

    def default(self, obj: Object) -> None:
        obj["status"].setdefault("phase", "Pending")
        default_claim_spec(obj["spec"])
        round_up_to_milli(obj["status"].get("capacity"))
        round_up_to_milli(obj["status"].get("allocatedResources"))

    def default_stored(self, obj: Object) -> None:
        _mirror(obj["spec"])

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        normalize_data_sources(new["spec"], old["spec"] if old is not None else None)
        if old is not None:
            _mirror(old["spec"])

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is None:
            return validate_claim_spec(new["spec"], "spec")
        before = old["spec"]
        errors = validate_claim_spec(
            new["spec"],
            "spec",
            allow_invalid_values=bool(validate_selector(before.get("selector"), "")),
            allow_invalid_group=any(
                (before.get(field) or {}).get("apiGroup") is not None
                for field in ("dataSource", "dataSourceRef")
            ),
        )
        return errors + _validate_change(new, old)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)


def normalize_data_sources(spec: Spec, before: Spec | None) -> None:
    """Makes dataSource and dataSourceRef equal. Drops a dataSource that is neither a claim nor a snapshot. Drops a
    dataSourceRef to another namespace, because that feature gate is off. Values of an existing claim are kept."""
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and not (before or {}).get("dataSourceRef"):
        del spec["dataSourceRef"]
        reference = None
    had_one = before is not None and ("dataSource" in before or "dataSourceRef" in before)
    if not had_one and reference is None and not _is_claim_or_snapshot(spec.get("dataSource")):
        spec.pop("dataSource", None)
    _mirror(spec)


def _mirror(spec: Spec) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _is_claim_or_snapshot(source: dict[str, Any] | None) -> bool:
    if source is None:
        return False
    named = (source.get("apiGroup") or "", source.get("kind"))
    return named in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def _storage(spec: Spec) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _validate_change(new: Object, old: Object) -> Errors:
    spec, before, status = new["spec"], old["spec"], old["status"]
    errors: Errors = []
    compared = dict(spec)
    if not before.get("volumeName"):
        compared["volumeName"] = before.get("volumeName")
    annotations = new["metadata"].get("annotations") or {}
    old_annotations = old["metadata"].get("annotations") or {}
    old_class, new_class = before.get("storageClassName"), spec.get("storageClassName")
    annotated = old_annotations.get(STORAGE_CLASS_ANNOTATION)
    if (
        annotated is not None
        and old_class is None
        and new_class == annotated
        and annotations.get(STORAGE_CLASS_ANNOTATION, annotated) == annotated
    ):
        compared.pop("storageClassName")
    else:
        if annotations.get(STORAGE_CLASS_ANNOTATION, "") != (annotated or ""):
            path = f"metadata.annotations.{STORAGE_CLASS_ANNOTATION}"
            value = annotations.get(STORAGE_CLASS_ANNOTATION, "")
            errors.append(invalid(path, value, "field is immutable"))
        if new_class is not None and old_class is None and annotated in (None, new_class):
            compared.pop("storageClassName")
    old_size, size = parse_quantity(_storage(before)), parse_quantity(_storage(spec))
    if status.get("phase") == "Bound":
        compared["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if status.get("phase") == "Bound" or size == old_size:
        compared["resources"] = _with_storage(spec, _storage(before))
    if _present(compared) != _present(before):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            "bound claims\n"
        ) + difference("core.PersistentVolumeClaimSpec", before, compared)
        errors.append(forbidden("spec", detail))
    capacity = parse_quantity((status.get("capacity") or {}).get("storage", "0"))
    if size < old_size and size <= capacity:
        path = "spec.resources.requests.storage"
        errors.append(forbidden(path, "field can not be less than status.capacity"))
    errors += immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    attributes = spec.get("volumeAttributesClassName")
    if (
        attributes != before.get("volumeAttributesClassName")
        and status.get("currentVolumeAttributesClassName") is not None
        and not attributes
    ):
        what = "nil" if attributes is None else "empty string"
        detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        errors.append(forbidden("spec.volumeAttributesClassName", detail))
    return errors


def _with_storage(spec: Spec, size: str) -> dict[str, Any]:
    resources = dict(spec.get("resources") or {})
    if "requests" in resources:
        resources["requests"] = {**resources["requests"], "storage": size}
    return resources


def _present(spec: Spec) -> Spec:
    return {key: value for key, value in spec.items() if value is not None}


def _validate_resource_key(key: str, path: str) -> Errors:
    errors = [invalid(path, key, message) for message in names.qualified_name(key)]
    if not errors and is_native(key) and key != "storage":
        errors.append(not_supported(path, key, ["storage"]))
    return errors


def _negative(amount: str, path: str) -> Errors:
    value = parse_quantity(amount).round_up(-3).value()
    return [invalid(path, value, "must be a valid resource quantity")] if value < 0 else []


def _validate_status(status: dict[str, Any]) -> Errors:
    errors: Errors = []
    for name, amount in (status.get("capacity") or {}).items():
        errors += _negative(amount, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _validate_resource_key(name, path)
        if state not in RESIZE_STATUSES:
            errors.append(not_supported(path, name, RESIZE_STATUSES))
    path = "status.allocatedResources"
    for name, amount in (status.get("allocatedResources") or {}).items():
        where = f"{path}[{name}]"
        errors += (
            _validate_resource_key(name, path)
            or _negative(amount, where)
            or validate_quantity("storage", amount, where)
        )
    return errors


def _warnings(claim: Object) -> Iterable[str]:
    if STORAGE_CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        yield storage_class_warning()
    yield from claim_spec_warnings(claim["spec"], "spec")


strategy = PersistentVolumeClaimStrategy()
