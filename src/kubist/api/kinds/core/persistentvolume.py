"""PersistentVolume: storage of the cluster. The source is immutable; size, modes and claimRef may change."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.core.podspec.affinity import validate_node_selector
from kubist.api.kinds.core.podspec.defaults import default_volume
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.paths import no_backsteps
from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.core.podspec.volume_claims import (
    VOLUME_MODES,
    validate_access_modes,
    validate_class_name,
)
from kubist.api.kinds.core.podspec.volumes import IQN_PREFIXES
from kubist.api.kinds.core.podspec.volumes import SOURCES as POD_SOURCES
from kubist.api.kinds.shared.node_labels import selector_warnings
from kubist.api.kinds.shared.resource_names import validate_positive_quantity
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.api.resources.strategy import Errors, Status, Strategy, Subresource
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import parse_quantity
from kubist.model.schema.internals import difference, internal_form

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
MOUNT_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"
_TAKES_MOUNT_OPTIONS = frozenset(
    {
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    }
)
_GONE = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
_NEWER_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


class PersistentVolumeStatus(Status):
    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        """Sets lastPhaseTransitionTime when the phase changes, unless the client sets it."""
        status, before = new["status"], old["status"]
        time, old_time = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if time is None and old_time is not None:
                status["lastPhaseTransitionTime"] = old_time
        elif time is None or time == old_time:
            status["lastPhaseTransitionTime"] = ctx.now


class PersistentVolumeStrategy(Strategy):
    returns_deleted = True
    reset_fields = ("status",)
    metadata_rules = ()
    subresources: Mapping[str, Subresource] = {"status": PersistentVolumeStatus()}

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        obj["status"].setdefault("phase", "Pending")
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        round_up_to_milli(spec.get("capacity"))
        default_volume(spec)

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None:
            new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": ctx.now}

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        name = new["metadata"].get("name", "")
        if old is None:
            return validate_spec(new["spec"], name, "spec") + _validate_mount_options(new)
        metadata = objectmeta.validate_create(
            new["metadata"], namespaced=False, validate_name=self.validate_name
        )
        affinity = (old["spec"].get("nodeAffinity") or {}).get("required")
        tolerant = affinity is not None and bool(validate_node_selector(affinity, ""))
        itself = validate_spec(new["spec"], name, "spec", allow_invalid_values=tolerant)
        # kube-apiserver validates the volume twice and the change once.
        return [
            *metadata,
            *itself,
            *_validate_mount_options(new),
            *metadata,
            *itself,
            *_validate_change(new["spec"], old["spec"]),
        ]

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)


def validate_spec(
    spec: dict[str, Any], name: str, path: str, *, inline: bool = False, allow_invalid_values: bool = False
) -> Errors:
    """`inline`: the spec is part of a VolumeAttachment, not of a PersistentVolume object."""
    errors: Errors = []
    if inline:
        errors += _validate_inline(spec, path)
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes"))
    errors += validate_access_modes(spec, f"{path}.accessModes")
    if not inline:
        errors += _validate_capacity(spec.get("capacity"), f"{path}.capacity")
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and inline:
        if policy != "Retain":
            detail = "may only be Retain in the context of inline volumes"
            errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    elif policy and policy not in RECLAIM_POLICIES:
        errors.append(not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES))
    if (affinity := spec.get("nodeAffinity")) is not None:
        if inline:
            detail = "may not be specified in the context of inline volumes"
            errors.append(forbidden(f"{path}.nodeAffinity", detail))
        elif affinity.get("required") is None:
            detail = "must specify required node constraints"
            errors.append(required(f"{path}.nodeAffinity.required", detail))
        else:
            errors += validate_node_selector(
                affinity["required"],
                f"{path}.nodeAffinity.required",
                allow_invalid_values=allow_invalid_values,
            )
    errors += _validate_source(spec, name, path)
    host_path = spec.get("hostPath")
    if host_path is not None and policy == "Recycle" and _clean(host_path.get("path", "")) == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    return errors + _validate_classes(spec, path, inline)


def _clean(path: str) -> str:
    return posixpath.normpath(path).replace("//", "/") if path else "."


def _validate_inline(spec: dict[str, Any], path: str) -> Errors:
    errors: Errors = []
    detail = "may not be specified in the context of inline volumes"
    if spec.get("claimRef") is not None:
        errors.append(forbidden(f"{path}.claimRef", detail))
    if spec.get("capacity"):
        errors.append(forbidden(f"{path}.capacity", detail))
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    return errors


def _validate_capacity(capacity: dict[str, str] | None, path: str) -> Errors:
    errors: Errors = [] if capacity else [required(path)]
    if list(capacity or ()) != ["storage"]:
        errors.append(not_supported(path, capacity, ["storage"]))
    for name, amount in (capacity or {}).items():
        if (value := parse_quantity(amount).round_up(-3).value()) < 0:
            errors.append(invalid(f"{path}[{name}]", value, "must be a valid resource quantity"))
        errors += validate_positive_quantity(amount, f"{path}[{name}]")
    return errors


def _validate_classes(spec: dict[str, Any], path: str, inline: bool) -> Errors:
    errors: Errors = []
    if name := spec.get("storageClassName"):
        if inline:
            detail = "may not be specified in the context of inline volumes"
            errors.append(forbidden(f"{path}.storageClassName", detail))
        else:
            errors += validate_class_name(name, f"{path}.storageClassName")
    mode = spec.get("volumeMode")
    if mode is not None and inline:
        if mode != "Filesystem":
            detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
            errors.append(forbidden(f"{path}.volumeMode", detail))
    elif mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    if not inline and (name := spec.get("volumeAttributesClassName")) is not None:
        where = f"{path}.volumeAttributesClassName"
        if name:
            errors += validate_class_name(name, where)
        else:
            errors.append(required(where, "an empty string is disallowed"))
        if spec.get("csi") is None:
            detail = "has to be specified when using volumeAttributesClassName"
            errors.append(required(f"{path}.csi", detail))
    return errors


def _validate_mount_options(volume: Object) -> Errors:
    annotations = volume["metadata"].get("annotations") or {}
    if MOUNT_OPTIONS_ANNOTATION not in annotations or _TAKES_MOUNT_OPTIONS.intersection(volume["spec"]):
        return []
    path = f"metadata.annotations.{MOUNT_OPTIONS_ANNOTATION}"
    return [forbidden(path, "may not specify mount options for this volume type")]


def _validate_change(spec: dict[str, Any], before: dict[str, Any]) -> Errors:
    errors: Errors = []
    source = {kind: spec[kind] for kind in _KINDS if kind in spec}
    old_source = {kind: before[kind] for kind in _KINDS if kind in before}
    if "controllerExpandSecretRef" in source.get("csi", ()) and "csi" in old_source:
        secret = old_source["csi"].get(
            "controllerExpandSecretRef", source["csi"]["controllerExpandSecretRef"]
        )
        old_source["csi"] = {**old_source["csi"], "controllerExpandSecretRef": secret}
    if source != old_source:
        changed = difference("core.PersistentVolumeSource", old_source, source)
        detail = f"spec.persistentvolumesource is immutable after creation\n{changed}"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    errors += immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    affinity, old_affinity = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if old_affinity is not None and not _same_affinity(affinity, old_affinity):
        detail = "field is immutable, except for updating from beta label to GA"
        errors.append(invalid("nodeAffinity", internal_form("*core.VolumeNodeAffinity", affinity), detail))
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        detail = "update from non-nil value to nil is forbidden"
        errors.append(forbidden("spec.volumeAttributesClassName", detail))
    return errors


def _same_affinity(new: Any, old: Any) -> bool:
    """Whether the affinities are equal, apart from beta labels replaced by their GA names."""
    if isinstance(new, dict) and isinstance(old, dict):
        if new.keys() != old.keys():
            return False
        if "key" in old and new["key"] == _NEWER_LABELS.get(old["key"], ""):
            old = {**old, "key": new["key"]}
        return all(_same_affinity(new[key], old[key]) for key in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_same_affinity, new, old))
    return bool(new == old)


def _warnings(volume: Object) -> Iterable[str]:
    annotations, spec = volume["metadata"].get("annotations") or {}, volume["spec"]
    path = "metadata.annotations"
    if STORAGE_CLASS_ANNOTATION in annotations:
        yield storage_class_warning()
    if MOUNT_OPTIONS_ANNOTATION in annotations:
        advice = 'deprecated since v1.31; use "mountOptions" attribute instead'
        yield f"{path}[{MOUNT_OPTIONS_ANNOTATION}]: {advice}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
            "recommended approach is to use dynamic provisioning."
        )
    required_affinity = (spec.get("nodeAffinity") or {}).get("required") or {}
    for i, term in enumerate(required_affinity.get("nodeSelectorTerms") or ()):
        yield from selector_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]")
    for kind, text in _GONE.items():
        if kind in spec:
            yield f"spec.{text}"


def storage_class_warning() -> str:
    advice = 'deprecated since v1.8; use "storageClassName" attribute instead'
    return f"metadata.annotations[{STORAGE_CLASS_ANNOTATION}]: {advice}"


_Source = dict[str, Any]
_OPTIONS = Options()
_ISCSI_ORDER = ("targetPortal", "targetportal", "iqn", "lun", "secretRef", "secretRef.name", "initiatorname")
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_KINDS: dict[str, tuple[str, str]] = {
    "hostPath": ("hostPath", "hostPath"),
    "gcePersistentDisk": ("persistentDisk", "gcePersistentDisk"),
    "awsElasticBlockStore": ("awsElasticBlockStore", "awsElasticBlockStore"),
    "glusterfs": ("glusterfs", "glusterfs"),
    "flocker": ("flocker", "flocker"),
    "nfs": ("nfs", "nfs"),
    "rbd": ("rbd", "rbd"),
    "quobyte": ("quobyte", "quobyte"),
    "cephfs": ("cephfs", "cephFS"),
    "iscsi": ("iscsi", "iscsi"),
    "cinder": ("cinder", "cinder"),
    "fc": ("fc", "fc"),
    "flexVolume": ("flexVolume", ""),
    "azureFile": ("azureFile", "azureFile"),
    "vsphereVolume": ("vsphereVolume", "vsphereVolume"),
    "photonPersistentDisk": ("photonPersistentDisk", "photonPersistentDisk"),
    "portworxVolume": ("portworxVolume", "portworxVolume"),
    "azureDisk": ("azureDisk", "azureDisk"),
    "scaleIO": ("scaleIO", "scaleIO"),
    "local": ("local", "local"),
    "storageos": ("storageos", "storageos"),
    "csi": ("csi", "csi"),
}
"""Field → its name in errors of the source, and its name in the "more than 1 volume type" error ("": never
reported)."""


def _validate_source(spec: dict[str, Any], volume_name: str, path: str) -> Errors:
    errors: Errors = []
    count = 0
    for kind, (field, clash) in _KINDS.items():
        source = spec.get(kind)
        if source is None:
            continue
        if count and clash:
            errors.append(forbidden(f"{path}.{clash}", "may not specify more than 1 volume type"))
            continue
        count += 1
        if kind == "iscsi":
            errors += _validate_iscsi(source, volume_name, f"{path}.{field}")
        else:
            errors += _validate(kind, source, f"{path}.{field}")
        if kind == "local" and spec.get("nodeAffinity") is None:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if not count:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _validate(kind: str, source: _Source, path: str) -> Errors:
    if kind == "csi":
        return _validate_csi(source, path)
    if kind == "local":
        local_path = source.get("path", "")
        return no_backsteps(local_path, f"{path}.path") if local_path else [required(f"{path}.path")]
    errors = POD_SOURCES[kind](source, path, _OPTIONS)
    if kind == "glusterfs" and (namespace := source.get("endpointsNamespace")) is not None:
        where = f"{path}.endpointsNamespace"
        if not namespace:
            detail = "if the endpointnamespace is set, it must be a valid namespace name"
            errors.append(invalid(where, namespace, detail))
        else:
            errors += [invalid(where, namespace, message) for message in names.dns_label(namespace)]
    elif kind in ("cinder", "storageos") and (secret := source.get("secretRef")) is not None:
        if not secret.get("namespace"):
            errors.append(required(f"{path}.secretRef.namespace"))
    elif kind == "azureFile" and source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))
    return errors


def _validate_iscsi(source: _Source, volume_name: str, path: str) -> Errors:
    """Validates the same rules as for pods, and also the portal and the secret."""
    errors = [
        replace(error, body=error.body.removesuffix(IQN_PREFIXES))
        for error in POD_SOURCES["iscsi"](source, path, _OPTIONS)
    ]
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and len(f"{volume_name}:{portal}".encode()) > 64:
        detail = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            "iscsi.initiatorName is specified."
        )
        errors.append(invalid(f"{path}.targetportal", portal, detail))
    if (secret := source.get("secretRef")) is not None and not secret.get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    return sorted(errors, key=lambda error: _ISCSI_ORDER.index(error.field.removeprefix(f"{path}.")))


def _validate_csi(source: _Source, path: str) -> Errors:
    errors = validate_driver_name(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    for field in _CSI_SECRETS:
        if (secret := source.get(field)) is None:
            continue
        for part, check in (("name", names.dns_subdomain), ("namespace", names.dns_label)):
            value = secret.get(part, "")
            where = f"{path}.{field}.{part}"
            if value:
                errors += [invalid(where, value, message) for message in check(value)]
            else:
                errors.append(required(where))
    return errors


strategy = PersistentVolumeStrategy()
