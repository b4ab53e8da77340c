"""Validation of containers: regular, init (including sidecars) and ephemeral, with their mounts and devices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orjson import dumps

from kubist.api.kinds.core.podspec import paths
from kubist.api.kinds.core.podspec.env import validate_env, validate_env_from
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.probes import validate_lifecycle, validate_probes
from kubist.api.kinds.core.podspec.resources import NO_CLAIMS, validate_requirements
from kubist.api.kinds.core.podspec.restarts import validate_resize_policy, validate_restart_policy
from kubist.api.kinds.core.podspec.security import validate_security_context
from kubist.api.kinds.core.podspec.visit import restarts_always
from kubist.api.kinds.core.podspec.volumes import PULL_POLICIES, validate_pull_policy
from kubist.api.kinds.shared.values import MAX_PORT, PROTOCOLS, validate_port, validate_protocol
from kubist.base.caching import skip_validated
from kubist.model.meta import names
from kubist.model.meta.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from kubist.model.meta.object import Object

Errors = list[FieldError]

WINDOWS_OPTIONS = "windowsOptions"
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_SIDECAR_ONLY = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_RUNNING = frozenset(_SIDECAR_ONLY)
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
"""Fields that an ephemeral container must not have, in schema order."""


class PodContext:
    """Parts of the pod that the rules for other parts depend on."""

    __slots__ = ("claims", "features", "meta", "options", "spec", "volumes")

    def __init__(self, spec: Object, meta: Object | None, options: Options) -> None:
        self.spec = spec
        self.meta = meta
        """Metadata of the pod; None for a template."""
        self.options = options
        self.volumes: Mapping[str, Object] = _NO_VOLUMES
        self.claims = NO_CLAIMS
        self.features: set[str] = set()
        """Features that the containers use and pod-level rules need, for example Windows options. Filled while
        containers are validated."""


_NO_VOLUMES: Mapping[str, Object] = MappingProxyType({})


def validate_containers(containers: list[Object] | None, pod: PodContext, path: str) -> Errors:
    if not containers:
        return [required(path)]
    errors: Errors = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        errors += _common(container, pod, where)
        name = container.get("name", "")
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if not _RUNNING.isdisjoint(container):
            errors += _running(container, pod, where)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            errors += validate_restart_policy(container, where)
    return errors + _host_port_conflicts(containers, path)


def validate_init_containers(
    containers: list[Object], regular: list[Object], pod: PodContext, path: str
) -> Errors:
    errors: Errors = []
    seen = {container.get("name", "") for container in regular}
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        errors += _common(container, pod, where)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            errors += validate_restart_policy(container, where, init=True)
        name = container.get("name", "")
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        elif name:
            seen.add(name)
        errors += _host_port_conflicts([container], path)
        if restarts_always(container):
            errors += _running(container, pod, where)
        else:
            why = "may not be set for init containers without restartPolicy=Always"
            errors += [forbidden(f"{where}.{field}", why) for field in _SIDECAR_ONLY if field in container]
            if not pod.options.restart_on_resize_of_init_containers:
                errors += _restarting_resize_policies(container, where)
    return errors


def _restarting_resize_policies(container: Object, path: str) -> Errors:
    why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", why)
        for index, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def validate_ephemeral_containers(
    containers: list[Object], others: list[Object], pod: PodContext, path: str
) -> Errors:
    errors: Errors = []
    other_names = {container.get("name", "") for container in others}
    seen = set(other_names)
    why = "cannot be set for an Ephemeral Container"
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        errors += _common(container, pod, where)
        errors += validate_images_padding([container], path, first=index)
        name, target = container.get("name", ""), container.get("targetContainerName", "")
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if target and target not in other_names:
            errors.append(not_found(f"{where}.targetContainerName", target))
        errors += [
            forbidden(f"{where}.{field}", why)
            for field in _NOT_EPHEMERAL
            if field in container and (field != "resources" or container["resources"])
        ]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            errors += [
                forbidden(f"{where}.volumeMounts[{position}].{field}", why)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return errors


def _running(container: Object, pod: PodContext, path: str) -> Errors:
    """Validates lifecycle and probes, which only regular containers and sidecars may have."""
    errors: Errors = []
    grace = pod.spec.get("terminationGracePeriodSeconds")
    if "lifecycle" in container:
        errors += validate_lifecycle(container["lifecycle"], grace, f"{path}.lifecycle")
    return errors + validate_probes(container, grace, path)


def _common(container: Object, pod: PodContext, path: str) -> Errors:
    errors: Errors = []
    name = container.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    elif not names.is_dns_label(name):
        errors += [invalid(f"{path}.name", name, problem) for problem in names.dns_label(name)]
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy", "")
    if policy not in _MESSAGE_POLICIES:
        where = f"{path}.terminationMessagePolicy"
        errors.append(not_supported(where, policy, _MESSAGE_POLICIES) if policy else required(where))
    if ports := container.get("ports"):
        errors += _ports(ports, f"{path}.ports")
    if variables := container.get("env"):
        errors += validate_env(variables, f"{path}.env", pod.features)
    if "envFrom" in container:
        errors += validate_env_from(container["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in container:
        errors += _validate_mounts(container, pod.volumes, f"{path}.volumeMounts")
    if "volumeDevices" in container:
        errors += _validate_devices(container, pod.volumes, f"{path}.volumeDevices")
    if container.get("imagePullPolicy") not in PULL_POLICIES:
        errors += validate_pull_policy(container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy")
    if resources := container.get("resources"):
        errors += validate_requirements(resources, pod.claims, f"{path}.resources", pod.options)
    if "resizePolicy" in container:
        restart_policy = pod.spec.get("restartPolicy", "")
        errors += validate_resize_policy(container["resizePolicy"], restart_policy, f"{path}.resizePolicy")
    if context := container.get("securityContext"):
        if WINDOWS_OPTIONS in context:
            pod.features.add(WINDOWS_OPTIONS)
        host_users = pod.spec.get("hostUsers") is not False
        errors += validate_security_context(context, host_users, f"{path}.securityContext", pod.options)
    return errors


@skip_validated(dumps)
def _ports(ports: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if name:
            if problems := names.port_name(name):
                errors += [invalid(f"{path}[{index}].name", name, problem) for problem in problems]
            elif name in seen:
                errors.append(duplicate(f"{path}[{index}].name", name))
            else:
                seen.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{path}[{index}].containerPort"))
        elif not 1 <= port["containerPort"] <= MAX_PORT:
            errors += validate_port(port["containerPort"], f"{path}[{index}].containerPort")
        if port.get("hostPort"):
            errors += validate_port(port["hostPort"], f"{path}[{index}].hostPort")
        if port.get("protocol") not in PROTOCOLS:
            errors += validate_protocol(port.get("protocol", ""), f"{path}[{index}].protocol")
    return errors


def _host_port_conflicts(containers: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
                if key in seen:
                    errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
                seen.add(key)
    return errors


def validate_images_padding(containers: list[Object] | None, path: str, first: int = 0) -> Errors:
    """Rejects images with leading or trailing spaces in pods. Templates may have spaces as a placeholder image."""
    errors: Errors = []
    for index, container in enumerate(containers or (), first):
        if "image" in container and container["image"] != container["image"].strip():
            why = "must not have leading or trailing whitespace"
            errors.append(invalid(f"{path}[{index}].image", container["image"], why))
    return errors


_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def _validate_mounts(container: Object, volumes: Mapping[str, Object], path: str) -> Errors:
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
    """Validates the optional fields. As in kube-apiserver, most errors name the list's path, not the mount's."""
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


def _validate_devices(container: Object, volumes: Mapping[str, Object], path: str) -> Errors:
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
