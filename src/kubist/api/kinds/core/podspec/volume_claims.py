"""Spec of a PersistentVolumeClaim, also in the claim templates of ephemeral volumes and StatefulSets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.shared.resource_names import is_whole, validate_positive_quantity
from kubist.api.kinds.shared.template import validate_template_metadata
from kubist.api.resources.strategy import Errors
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object

Spec = dict[str, Any]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def default_claim_spec(spec: Spec) -> None:
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.get("resources") or {}
    round_up_to_milli(resources.get("limits"))
    round_up_to_milli(resources.get("requests"))


def validate_claim_template(template: Object, path: str) -> Errors:
    """Validates the claim template of an ephemeral volume."""
    errors = validate_template_metadata(template.get("metadata") or {}, f"{path}.metadata")
    return errors + validate_claim_spec(template.get("spec") or {}, f"{path}.spec")


def validate_claim_spec(
    spec: Spec, path: str, *, allow_invalid_values: bool = False, allow_invalid_group: bool = False
) -> Errors:
    errors: Errors = []
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if (selector := spec.get("selector")) is not None:
        errors += validate_selector(selector, f"{path}.selector", allow_invalid_values=allow_invalid_values)
    errors += validate_access_modes(spec, f"{path}.accessModes")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        errors += validate_positive_quantity(size, f"{path}.resources[storage]")
    if name := spec.get("storageClassName"):
        errors += validate_class_name(name, f"{path}.storageClassName")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    errors += _validate_data_sources(spec, path, allow_invalid_group)
    if name := spec.get("volumeAttributesClassName"):
        errors += validate_class_name(name, f"{path}.volumeAttributesClassName")
    return errors


def _validate_data_sources(spec: Spec, path: str, allow_invalid_group: bool) -> Errors:
    errors: Errors = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        errors += _validate_reference(source, f"{path}.dataSource", allow_invalid_group)
    if reference is not None:
        errors += _validate_reference(reference, f"{path}.dataSourceRef", allow_invalid_group)
        if namespace := reference.get("namespace"):
            where = f"{path}.dataSourceRef.namespace"
            errors += [invalid(where, namespace, message) for message in names.dns_label(namespace)]
    if source is not None and reference is not None:
        if reference.get("namespace"):
            detail = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(invalid(path, {}, detail))
        elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
            errors.append(invalid(path, {}, "must match dataSourceRef"))
    return errors


def _validate_reference(reference: dict[str, Any], path: str, allow_invalid_group: bool) -> Errors:
    errors = [required(f"{path}.{field}") for field in ("name", "kind") if not reference.get(field)]
    group, kind = reference.get("apiGroup") or "", reference.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, kind, detail))
    if group and not allow_invalid_group:
        errors += [invalid(f"{path}.apiGroup", group, message) for message in names.dns_subdomain(group)]
    return errors


def validate_access_modes(spec: dict[str, Any], path: str) -> Errors:
    modes = spec.get("accessModes") or ()
    errors: Errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = set(modes).intersection(ACCESS_MODES)
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_class_name(name: str, path: str) -> Errors:
    return [invalid(path, name, message) for message in names.dns_subdomain(name)]


def claim_spec_warnings(spec: Spec, path: str) -> Iterable[str]:
    resources = spec.get("resources") or {}
    for field in ("requests", "limits"):
        amount = (resources.get(field) or {}).get("storage")
        if amount is not None and not is_whole(amount):
            where = f"{path}.resources.{field}[storage]"
            yield f"{where}: fractional byte value {quoted(amount)} is invalid, must be an integer"
