"""Validation of volume mounts and block devices of a container."""

from __future__ import annotations

from collections.abc import Mapping

from kubist.api.kinds.core.podspec import paths
from kubist.model.meta.fields import FieldError, forbidden, invalid, not_found, not_supported, required
from kubist.model.meta.object import Object

Errors = list[FieldError]

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(container: Object, volumes: Mapping[str, Object], path: str) -> Errors:
    errors: Errors = []
    devices = {
        device.get("name", ""): device.get("devicePath", "")
        for device in container.get("volumeDevices") or ()
    }
    device_paths = set(devices.values())
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        if name not in volumes:
            errors.append(not_found(f"{path}[{index}].name", name))
        if not target:
            errors.append(required(f"{path}[{index}].mountPath"))
        if target in seen:
            errors.append(invalid(f"{path}[{index}].mountPath", target, "must be unique"))
        seen.add(target)
        if name in devices:
            errors.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeDevices"))
        if target in device_paths:
            why = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{path}[{index}].mountPath", target, why))
        if len(mount) > 2:
            errors += _details(mount, container, f"{path}[{index}]", path)
    return errors


def _details(mount: Object, container: Object, path: str, list_path: str) -> Errors:
    """Validates the optional fields. As in the reference, most errors name the list's path, not the mount's."""
    errors: Errors = []
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        errors += paths.local_descending(sub_path, f"{list_path}.subPath")
    if expression:
        if sub_path:
            why = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{path}.subPathExpr", expression, why))
        errors += paths.local_descending(expression, f"{list_path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        where = f"{list_path}.mountPropagation"
        if propagation not in _PROPAGATIONS:
            errors.append(not_supported(where, propagation, _PROPAGATIONS))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            why = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(where, why))
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None:
        where = f"{list_path}.recursiveReadOnly"
        if recursive not in _RECURSIVE_READ_ONLY:
            errors.append(not_supported(where, recursive, _RECURSIVE_READ_ONLY))
        elif recursive != "Disabled":
            if not mount.get("readOnly"):
                errors.append(forbidden(where, "may only be specified when readOnly is true"))
            if propagation not in (None, "None"):
                why = "may only be specified when mountPropagation is None or not specified"
                errors.append(forbidden(where, why))
    return errors


def validate_devices(container: Object, volumes: Mapping[str, Object], path: str) -> Errors:
    errors: Errors = []
    mounts = {
        mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts") or ()
    }
    mount_paths = set(mounts.values())
    names: set[str] = set()
    targets: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        name, target = device.get("name", ""), device.get("devicePath", "")
        where_name, where_target = f"{path}[{index}].name", f"{path}[{index}].devicePath"
        volume = volumes.get(name)
        if not name:
            errors.append(required(where_name))
        if name in names:
            errors.append(invalid(where_name, name, "must be unique"))
        if volume is None:
            errors.append(not_found(where_name, name))
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(where_name, name, why))
        if not target:
            errors.append(required(where_target))
        if target in targets:
            errors.append(invalid(where_target, target, "must be unique"))
        if paths.no_backsteps(target, where_target):
            errors.append(invalid(where_target, target, "can not contain backsteps ('..')"))
        else:
            targets.add(target)
        if name in mounts:
            errors.append(invalid(where_name, name, "must not already exist in volumeMounts"))
        if target in mount_paths:
            why = "must not already exist as a path in volumeMounts"
            errors.append(invalid(where_target, target, why))
        if name:
            names.add(name)
    return errors
