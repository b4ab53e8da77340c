"""Sources of a PersistentVolume: exactly one of the known kinds, each with its own validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.paths import no_backsteps
from kubist.api.kinds.core.podspec.volumesources import IQN_PREFIXES
from kubist.api.kinds.core.podspec.volumesources import SOURCES as POD_SOURCES
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid, required

Source = dict[str, Any]
Errors = list[FieldError]

_OPTIONS = Options()
_ISCSI_ORDER = ("targetPortal", "targetportal", "iqn", "lun", "secretRef", "secretRef.name", "initiatorname")
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
KINDS: dict[str, tuple[str, str]] = {
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


def validate_source(spec: dict[str, Any], volume_name: str, path: str) -> Errors:
    errors: Errors = []
    found = 0
    for kind, (shown, clash) in KINDS.items():
        source = spec.get(kind)
        if source is None:
            continue
        if found and clash:
            errors.append(forbidden(f"{path}.{clash}", "may not specify more than 1 volume type"))
            continue
        found += 1
        if kind == "iscsi":
            errors += _validate_iscsi(source, volume_name, f"{path}.{shown}")
        else:
            errors += _validate(kind, source, f"{path}.{shown}")
        if kind == "local" and spec.get("nodeAffinity") is None:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if not found:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _validate(kind: str, source: Source, path: str) -> Errors:
    if kind == "csi":
        return _validate_csi(source, path)
    if kind == "local":
        given = source.get("path", "")
        return no_backsteps(given, f"{path}.path") if given else [required(f"{path}.path")]
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


def _validate_iscsi(source: Source, volume_name: str, path: str) -> Errors:
    """Validates as for pods, and in addition the portal and the secret."""
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


def _validate_csi(source: Source, path: str) -> Errors:
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
