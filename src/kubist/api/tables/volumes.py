"""Tables of PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, wide
from kubist.api.tables.shared import UNSET, part
from kubist.model.meta.object import Object

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

_STORAGE_CLASS = Column("StorageClass", "StorageClass.")
_ATTRIBUTES_CLASS = Column("VolumeAttributesClass", "VolumeAttributesClass.")
_MODE = wide("VolumeMode", "File system or block device.")
_ACCESS = Column("Access Modes", "Ways to mount the volume.")


def _phase(obj: Object) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str(part(obj, "status").get("phase", ""))


def _class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_ANNOTATION, part(obj, "spec").get("storageClassName", "")))


def _modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in SHORT.items() if mode in (modes or ()))


def _volume(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        part(obj, "status").get("reason", ""),
        age(obj),
        spec.get("volumeMode", UNSET),
    ]


def _claim(obj: Object) -> list[Cell]:
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        part(status, "capacity").get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        age(obj),
        spec.get("volumeMode", UNSET),
    ]


VOLUMES = Table(
    (
        NAME,
        Column("Capacity", "Size of the volume."),
        _ACCESS,
        Column("Reclaim Policy", "Fate of the volume after the deletion of its claim."),
        Column("Status", "Phase of the volume: Available, Bound, Released or Failed."),
        Column("Claim", "Claim that the volume is bound to."),
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        Column("Reason", "Reason of the status."),
        AGE,
        _MODE,
    ),
    _volume,
)
CLAIMS = Table(
    (
        NAME,
        Column("Status", "Phase of the claim: Pending, Bound or Lost."),
        Column("Volume", "Volume that the claim is bound to."),
        Column("Capacity", "Size of that volume."),
        _ACCESS,
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        AGE,
        _MODE,
    ),
    _claim,
)
