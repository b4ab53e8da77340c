"""Columns of the kinds of group storage.k8s.io."""

from __future__ import annotations

from dataclasses import replace

from kubist.api.tables.cells import NONE, UNSET, size
from kubist.api.tables.columns import AGE, NAME, Column, Table, flag, name_of, number, part
from kubist.model.meta.object import Object

DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _class_name(storage_class: Object) -> str:
    annotations = storage_class["metadata"].get("annotations") or {}
    is_default = any(annotations.get(name) == "true" for name in DEFAULT_CLASS)
    return name_of(storage_class) + " (default)" if is_default else name_of(storage_class)


def _audiences(driver: Object) -> str:
    tokens = part(driver, "spec").get("tokenRequests")
    return ",".join(token.get("audience", "") for token in tokens) if tokens is not None else UNSET


def _modes(driver: Object) -> str:
    return ",".join(part(driver, "spec", "volumeLifecycleModes")) or NONE


TABLES = {
    "StorageClass": Table(
        replace(NAME, cell=_class_name),
        Column("Provisioner", "Provisioner of the volumes.", path="provisioner"),
        Column(
            "ReclaimPolicy",
            "Fate of a volume after the deletion of its claim.",
            path="reclaimPolicy",
            absent="Delete",
        ),
        Column(
            "VolumeBindingMode",
            "Time at which volumes are provisioned and bound.",
            path="volumeBindingMode",
            absent="Immediate",
        ),
        Column(
            "AllowVolumeExpansion", "Whether volumes can grow.", path="allowVolumeExpansion", absent=False
        ),
        AGE,
    ),
    "VolumeAttributesClass": Table(
        NAME, Column("DriverName", "CSI driver of the class.", path="driverName"), AGE
    ),
    "VolumeAttachment": Table(
        NAME,
        Column("Attacher", "Driver that attaches the volume.", path="spec.attacher", format="name"),
        Column("PV", "Volume that is attached.", path="spec.source.persistentVolumeName"),
        Column("Node", "Node of the attachment.", path="spec.nodeName"),
        flag("Attached", "Whether it is attached.", path="status.attached"),
        AGE,
    ),
    "CSINode": Table(
        NAME, number("Drivers", "Number of CSI drivers on the node.", cell=size("spec.drivers")), AGE
    ),
    "CSIDriver": Table(
        NAME,
        flag(
            "AttachRequired",
            "Whether volumes must be attached before they are mounted.",
            path="spec.attachRequired",
            absent=True,
        ),
        flag(
            "PodInfoOnMount",
            "Whether the driver is told about the pod on mounting.",
            path="spec.podInfoOnMount",
        ),
        flag(
            "StorageCapacity", "Whether the driver says how much space there is.", path="spec.storageCapacity"
        ),
        Column("TokenRequests", "Audiences of the tokens for the driver.", cell=_audiences),
        flag(
            "RequiresRepublish",
            "Whether mounts are asked for again and again.",
            path="spec.requiresRepublish",
        ),
        Column("Modes", "Life cycle modes of volumes that the driver supports.", cell=_modes),
        AGE,
    ),
}
