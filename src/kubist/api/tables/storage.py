"""Tables of the kinds of group storage.k8s.io."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, flag, name_of, number
from kubist.api.tables.shared import NONE, UNSET, part
from kubist.model.meta.object import Object

DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _storage_class(obj: Object) -> list[Cell]:
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in DEFAULT_CLASS)
    return [
        name_of(obj) + " (default)" if default else name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj),
    ]


def _attributes_class(obj: Object) -> list[Cell]:
    return [name_of(obj), obj.get("driverName", ""), age(obj)]


def _attachment(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("attacher", ""),
        part(spec, "source").get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        part(obj, "status").get("attached", False),
        age(obj),
    ]


def _csi_node(obj: Object) -> list[Cell]:
    return [name_of(obj), len(part(obj, "spec").get("drivers") or ()), age(obj)]


def _csi_driver(obj: Object) -> list[Cell]:
    spec = part(obj, "spec")
    tokens = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(token.get("audience", "") for token in tokens) if tokens is not None else UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj),
    ]


TABLES = {
    "StorageClass": Table(
        (
            NAME,
            Column("Provisioner", "Provisioner of the volumes."),
            Column("ReclaimPolicy", "Fate of a volume after the deletion of its claim."),
            Column("VolumeBindingMode", "Time at which volumes are provisioned and bound."),
            Column("AllowVolumeExpansion", "Whether volumes can grow."),
            AGE,
        ),
        _storage_class,
    ),
    "VolumeAttributesClass": Table(
        (NAME, Column("DriverName", "CSI driver of the class."), AGE), _attributes_class
    ),
    "VolumeAttachment": Table(
        (
            NAME,
            Column("Attacher", "Driver that attaches the volume.", format="name"),
            Column("PV", "Volume that is attached."),
            Column("Node", "Node of the attachment."),
            flag("Attached", "Whether it is attached."),
            AGE,
        ),
        _attachment,
    ),
    "CSINode": Table((NAME, number("Drivers", "Number of CSI drivers on the node."), AGE), _csi_node),
    "CSIDriver": Table(
        (
            NAME,
            flag("AttachRequired", "Whether volumes must be attached before they are mounted."),
            flag("PodInfoOnMount", "Whether the driver is told about the pod on mounting."),
            flag("StorageCapacity", "Whether the driver says how much space there is."),
            Column("TokenRequests", "Audiences of the tokens for the driver."),
            flag("RequiresRepublish", "Whether mounts are asked for again and again."),
            Column("Modes", "Life cycle modes of volumes that the driver supports."),
            AGE,
        ),
        _csi_driver,
    ),
}
