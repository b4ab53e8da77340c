"""Object metadata: validation on create and on update; the generation, which counts changes of the desired state; uids.

The verbs call these functions. Kinds call `validate_update` where their own validation repeats the metadata's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from kubist.base.caching import skip_validated
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid, required, too_long
from kubist.model.meta.object import Object

Meta = dict[str, Any]
Errors = list[FieldError]

ANNOTATIONS_LIMIT = 256 * 1024
FIELD_MANAGER_LIMIT = 128
APISERVER_MANAGER = "kube-apiserver"
"""Field manager of the API server's own writes."""
SUBRESOURCE_LIMIT = 256
NAMESPACE_FINALIZER = "kubernetes"
ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
SHOWN_OWNERS = 64
"""Maximum number of owners that every error shows. With more owners only one error shows them, because the
response would grow with their square."""
STANDARD_FINALIZERS = frozenset({NAMESPACE_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER})
IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
FIELD_IMMUTABLE = "field is immutable"


def validate_create(
    meta: Meta,
    *,
    namespaced: bool,
    validate_name: Callable[[str, bool], list[str]],
    path: str = "metadata",
    qualified_finalizers: bool = True,
) -> Errors:
    """Validates the metadata of a new object. Its name is already generated.

    `qualified_finalizers`: finalizers must have a domain, as nearly all built-in kinds require.
    """
    errors: Errors = []
    prefix = meta.get("generateName")
    if prefix and (problems := validate_name(prefix, True)):
        errors += [invalid(f"{path}.generateName", prefix, problem) for problem in problems]
    name = meta.get("name")
    if name:
        if problems := validate_name(name, False):
            errors += [invalid(f"{path}.name", name, problem) for problem in problems]
    else:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    namespace = meta.get("namespace")
    if not namespaced:
        if namespace:
            errors.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    elif not namespace:
        errors.append(required(f"{path}.namespace"))
    elif not names.is_dns_label(namespace):
        errors += [invalid(f"{path}.namespace", namespace, problem) for problem in names.dns_label(namespace)]
    if meta.get("generation", 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0"))
    errors += _common(meta, path, finalizers=True)
    if qualified_finalizers and "finalizers" in meta:
        errors += _unqualified_finalizers(meta, path)
    return errors


def validate_update(
    new: Meta, old: Meta, path: str = "metadata", *, qualified_finalizers: bool = True
) -> Errors:
    """Validates updated metadata, as the validation of a kind does."""
    errors = validate_change(new, old, path) + _common(new, path, finalizers=False)
    if qualified_finalizers and "finalizers" in new:
        errors += _unqualified_finalizers(new, path)
    return errors


def validate_change(new: Meta, old: Meta, path: str = "metadata") -> Errors:
    """Validates only the difference between old and new metadata: immutable fields, generation, new finalizers."""
    errors: Errors = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(new.get("finalizers") or ()).difference(old.get("finalizers") or ()))
        if extra:
            listing = ", ".join(quoted(name) for name in extra)
            detail = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listing}}}"
            )
            errors.append(forbidden(f"{path}.finalizers", detail))
    if new.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid(f"{path}.generation", new.get("generation", 0), "must not be decremented"))
    for name in IMMUTABLE:
        if new.get(name) != old.get(name):
            value = new.get(name, "" if name in ("name", "namespace", "uid") else None)
            errors.append(invalid(f"{path}.{name}", value, FIELD_IMMUTABLE))
    return errors


def validate_any_update(new: Meta, old: Meta, *, namespaced: bool, path: str = "metadata") -> Errors:
    """Validates the metadata of every update before the validation of its kind. Causes are therefore repeated,
    as in the reference."""
    errors = validate_create(
        new, namespaced=namespaced, validate_name=names.path_segment, path=path, qualified_finalizers=False
    )
    if not errors:
        return validate_change(new, old, path)
    return errors + validate_update(new, old, path, qualified_finalizers=False)


def _common(meta: Meta, path: str, *, finalizers: bool) -> Errors:
    errors: Errors = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, f"{path}.labels")
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, f"{path}.annotations")
    if "ownerReferences" in meta and (owners := meta["ownerReferences"]):
        errors += validate_owner_references(owners, f"{path}.ownerReferences")
    if finalizers and "finalizers" in meta and (entries := meta["finalizers"]):
        errors += validate_finalizers(entries, f"{path}.finalizers")
    if managers := meta.get("managedFields"):
        errors += validate_managed_fields(managers, f"{path}.managedFields")
    return errors


@skip_validated(orjson.dumps)
def validate_labels(labels: dict[str, str], path: str) -> Errors:
    errors: Errors = []
    for key, value in labels.items():
        errors += [invalid(path, key, message) for message in names.qualified_name(key)]
        errors += [invalid(path, value, message) for message in names.label_value(value)]
    return errors


def validate_annotations(annotations: dict[str, str], path: str) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        if problems := names.qualified_name(key.lower()):
            errors += [invalid(path, key, problem) for problem in problems]
    if size > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


def validate_owner_references(owners: Sequence[dict[str, Any]], path: str) -> Errors:
    errors: Errors = []
    controller = ""
    is_reported = False
    for owner in owners:
        api_version = owner.get("apiVersion", "")
        version = "" if api_version.count("/") > 1 else api_version.rpartition("/")[2]
        if not version:
            errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
        errors += [
            invalid(f"{path}.{field}", "", "must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        if api_version == "v1" and owner.get("kind") == "Event":
            errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller and (not is_reported or len(owners) <= SHOWN_OWNERS):
                is_reported = True
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                errors.append(invalid(path, list(owners), detail))
            elif not controller:
                controller = name
    return errors


def validate_finalizers(finalizers: Sequence[str], path: str) -> Errors:
    errors = [
        invalid(path, finalizer, message)
        for finalizer in finalizers
        for message in names.qualified_name(finalizer)
    ]
    if ORPHAN_FINALIZER in finalizers and FOREGROUND_FINALIZER in finalizers:
        detail = f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set"
        errors.append(invalid(path, list(finalizers), detail))
    return errors


def validate_qualified_finalizer(finalizer: str, path: str) -> Errors:
    """Checks that a finalizer of a built-in kind has a domain or is a standard finalizer."""
    if "/" in finalizer or finalizer in STANDARD_FINALIZERS:
        return []
    return [invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")]


def _unqualified_finalizers(meta: Meta, path: str) -> Errors:
    errors: Errors = []
    for i, finalizer in enumerate(meta.get("finalizers") or ()):
        errors += validate_qualified_finalizer(finalizer, f"{path}.finalizers[{i}]")
    return errors


def validate_managed_fields(entries: Sequence[dict[str, Any]], path: str) -> Errors:
    errors: Errors = []
    for index, entry in enumerate(entries):
        get = entry.get
        if get("operation") not in ("Apply", "Update"):
            where = f"{path}[{index}].operation"
            errors.append(invalid(where, get("operation", ""), "must be `Apply` or `Update`"))
        if get("fieldsType", "") not in ("", "FieldsV1"):
            errors.append(invalid(f"{path}[{index}].fieldsType", get("fieldsType"), "must be `FieldsV1`"))
        if not _manager_fits(manager := get("manager", "")):
            errors += validate_field_manager(manager, f"{path}[{index}].manager")
        if "subresource" in entry and len(entry["subresource"].encode()) > SUBRESOURCE_LIMIT:
            errors.append(too_long(f"{path}[{index}].subresource", SUBRESOURCE_LIMIT))
    return errors


def _manager_fits(manager: str) -> bool:
    return manager.isascii() and manager.isprintable() and len(manager) <= FIELD_MANAGER_LIMIT


def validate_field_manager(manager: str, path: str) -> Errors:
    if _manager_fits(manager):
        return []
    errors: Errors = []
    if len(manager.encode()) > FIELD_MANAGER_LIMIT:
        errors.append(too_long(path, FIELD_MANAGER_LIMIT))
    position = 0
    for char in manager[:FIELD_MANAGER_LIMIT]:
        if not char.isprintable():
            detail = f"invalid character U+{ord(char):04X} (at position {position})"
            errors.append(invalid(path, manager, detail))
        position += len(char.encode())
    return errors


def finalizer_warnings(new: Meta, old: Meta | None = None, path: str = "metadata") -> list[str]:
    """Warnings for a custom resource about added finalizers that built-in kinds reject."""
    added = set(new.get("finalizers") or ()).difference((old or {}).get("finalizers") or ())
    texts: list[str] = []
    for finalizer in sorted(added):
        where = f"{path}.finalizers: {quoted(finalizer)}: "
        texts += [where + message for message in names.qualified_name(finalizer)]
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            including = " including a path (/)" if "." in finalizer else ""
            texts.append(
                f"{where}prefer a domain-qualified finalizer name{including} to avoid accidental conflicts "
                "with other finalizer writers"
            )
    return texts


def deduplicate_owner_references(meta: Meta, *, after_admission: bool = False) -> str:
    """Removes duplicate ownerReferences. Returns the warning, or an empty string if there were none."""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return ""
    kept: dict[bytes, Any] = {}
    dropped = []
    for owner in owners:
        identity = orjson.dumps(owner, option=orjson.OPT_SORT_KEYS)
        if identity in kept:
            dropped.append(owner.get("uid", ""))
        else:
            kept[identity] = owner
    if not dropped:
        return ""
    meta["ownerReferences"] = list(kept.values())
    when = " after mutating admission happens" if after_admission else ""
    return (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in "
        "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
        f"observed: {', '.join(dropped)}"
    )


def raise_generation(new: Object, old: Object) -> None:
    """Sets the generation of the new object to one more than the old object's, which may be missing."""
    new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def raise_generation_if_set(metadata: Object) -> None:
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1


def new_uid() -> str:
    """Random UUID (version 4) for an object or a request. `uuid.uuid4` takes twice as long."""
    text = os.urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"
