"""The whole PodSpec, in the order in which its parts are looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.kinds.core.podspec.affinity import validate_affinity
from kubist.kinds.core.podspec.containers import (
    Surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from kubist.kinds.core.podspec.dns import (
    validate_dns_config,
    validate_dns_policy,
    validate_host_aliases,
    validate_hostname_override,
)
from kubist.kinds.core.podspec.options import Options
from kubist.kinds.core.podspec.resources import (
    validate_pod_resources,
    validate_requirements,
    validate_resource_claims,
)
from kubist.kinds.core.podspec.scheduling import (
    validate_readiness_gates,
    validate_scheduling_gates,
    validate_tolerations,
)
from kubist.kinds.core.podspec.security import validate_pod_security_context
from kubist.kinds.core.podspec.spread import validate_spread
from kubist.kinds.core.podspec.visit import containers_of, with_paths
from kubist.kinds.core.podspec.volumes import validate_volumes
from kubist.kinds.core.podspec.windows import (
    validate_host_process,
    validate_linux_pod,
    validate_windows_pod,
)
from kubist.kinds.shared.labels import validate_labels
from kubist.meta import names
from kubist.meta.fields import FieldError, forbidden, invalid, not_found, not_supported, required

Object = dict[str, Any]
Errors = list[FieldError]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_MAX_INT32 = (1 << 31) - 1


def validate_pod_spec(spec: Object, meta: Object | None, path: str, options: Options) -> Errors:
    """All that is wrong with a PodSpec. `meta` is the metadata of the pod, None for a template."""
    errors: Errors = []
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    pod_name = (meta or {}).get("name") or ""
    volumes, found = validate_volumes(spec.get("volumes"), pod_name, f"{path}.volumes", options)
    errors += found
    claims = spec.get("resourceClaims") or []
    if claims:
        annotations = (meta or {}).get("annotations") or {}
        errors += validate_resource_claims(claims, annotations, f"{path}.resourceClaims")
    around = Surroundings(
        volumes=volumes,
        claims={claim["name"] for claim in claims if claim.get("name")},
        grace=grace,
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers") is not False,
        options=options,
    )
    errors += _containers(spec, around, path)
    errors += _policies(spec, path)
    errors += validate_pod_security_context(spec, f"{path}.securityContext", options)
    errors += _placement(spec, path, options)
    errors += _system(spec, path, options)
    errors += _identity(spec, path)
    errors += _classes(spec, path, options)
    errors += _file_key_volumes(spec, path)
    return errors


def _containers(spec: Object, around: Surroundings, path: str) -> Errors:
    regular, init = spec.get("containers") or [], spec.get("initContainers") or []
    errors = validate_containers(regular, around, f"{path}.containers")
    if init:
        errors += validate_init_containers(init, regular, around, f"{path}.initContainers")
    if "ephemeralContainers" in spec:
        ephemeral = spec["ephemeralContainers"] or []
        others = regular + init
        errors += validate_ephemeral_containers(ephemeral, others, around, f"{path}.ephemeralContainers")
    if "resources" in spec:
        errors += validate_pod_resources(spec, around.claims, f"{path}.resources", around.options)
    if spec.get("hostNetwork"):
        errors += _host_ports(regular, f"{path}.containers", around.options)
    return errors


def _host_ports(containers: list[Object], path: str, options: Options) -> Errors:
    """On the host's network a port is the host's port; templates may leave it open."""
    why = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}[{index}].ports[{position}].hostPort", port.get("hostPort", 0), why)
        for index, container in enumerate(containers)
        for position, port in enumerate(container.get("ports") or ())
        if (options.is_pod or port.get("hostPort"))
        and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def _policies(spec: Object, path: str) -> Errors:
    errors: Errors = []
    policy = spec.get("restartPolicy", "")
    if policy not in RESTART_POLICIES:
        where = f"{path}.restartPolicy"
        errors.append(not_supported(where, policy, RESTART_POLICIES) if policy else required(where))
    errors += validate_dns_policy(spec.get("dnsPolicy", ""), f"{path}.dnsPolicy")
    if "nodeSelector" in spec:
        errors += validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    return errors


def _placement(spec: Object, path: str, options: Options) -> Errors:
    errors: Errors = []
    if "affinity" in spec:
        errors += validate_affinity(spec["affinity"], f"{path}.affinity", options)
    errors += validate_dns_config(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig")
    if "readinessGates" in spec:
        errors += validate_readiness_gates(spec["readinessGates"], f"{path}.readinessGates")
    if "schedulingGates" in spec:
        errors += validate_scheduling_gates(spec["schedulingGates"], f"{path}.schedulingGates")
    if "topologySpreadConstraints" in spec:
        constraints = spec["topologySpreadConstraints"]
        errors += validate_spread(constraints, f"{path}.topologySpreadConstraints", options)
    return errors


def _system(spec: Object, path: str, options: Options) -> Errors:
    """What touches the host: processes of it on Windows, users of its own on Linux, its name."""
    errors = validate_host_process(spec, path, options)
    if spec.get("hostUsers") is False:
        why = "when `hostUsers` is false"
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                errors.append(forbidden(f"{path}.{shown}", why))
        if not options.devices_with_user_namespaces:
            errors += [
                forbidden(f"{where}.volumeDevices", why)
                for container, where in with_paths(spec, path)
                if container.get("volumeDevices")
            ]
    if "hostnameOverride" in spec:
        errors += validate_hostname_override(spec, f"{path}.hostnameOverride")
    return errors


def _named(spec: Object, path: str, field: str, rule: Callable[[str], list[str]]) -> Errors:
    """A field that, if it is there, is the name of something."""
    value = spec.get(field)
    return [invalid(f"{path}.{field}", value, problem) for problem in rule(value)] if value else []


def _identity(spec: Object, path: str) -> Errors:
    """As whom, where, for how long and under which names the pod runs, and what it puts up with."""
    errors = _named(spec, path, "serviceAccountName", names.dns_subdomain)
    errors += _named(spec, path, "nodeName", names.dns_subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        why = f"must be between 1 and {_MAX_INT32}, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, why))
    errors += _named(spec, path, "hostname", names.dns_label)
    errors += _named(spec, path, "subdomain", names.dns_label)
    if "tolerations" in spec:
        errors += validate_tolerations(spec["tolerations"], f"{path}.tolerations")
    if "hostAliases" in spec:
        errors += validate_host_aliases(spec["hostAliases"], f"{path}.hostAliases")
    return errors


def _classes(spec: Object, path: str, options: Options) -> Errors:
    """Priority, runtime and operating system."""
    errors = _named(spec, path, "priorityClassName", names.dns_subdomain)
    if "runtimeClassName" in spec:
        value = spec["runtimeClassName"]
        errors += [invalid(f"{path}.runtimeClassName", value, m) for m in names.dns_subdomain(value)]
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        where = f"{path}.preemptionPolicy"
        errors.append(not_supported(where, policy, _PREEMPTION_POLICIES) if policy else required(where))
    if "overhead" in spec:
        errors += validate_requirements({"limits": spec["overhead"]}, set(), f"{path}.overhead", options)
    if "os" in spec:
        match spec["os"].get("name", ""):
            case "":
                errors.append(required(f"{path}.os.name"))
            case "linux":
                errors += validate_linux_pod(spec, path)
            case "windows":
                errors += validate_windows_pod(spec, path)
            case other:
                errors.append(not_supported(f"{path}.os", other, ("linux", "windows")))
    return errors


def _file_key_volumes(spec: Object, path: str) -> Errors:
    """Environment variables are read from files of emptyDir volumes only."""
    if not any(_file_key_refs(container) for container in containers_of(spec)):
        return []
    errors: Errors = []
    sources = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
    for container, where in with_paths(spec, path):
        for index, ref in _file_key_refs(container):
            name = ref.get("volumeName", "")
            field = f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in sources:
                errors.append(not_found(field, name))
            elif "emptyDir" not in sources[name]:
                errors.append(invalid(field, name, "referenced volume must be of type emptyDir"))
    return errors


def _file_key_refs(container: Object) -> list[tuple[int, Object]]:
    """The variables of a container that are read from files, with their positions."""
    return [
        (index, variable["valueFrom"]["fileKeyRef"])
        for index, variable in enumerate(container.get("env") or ())
        if "valueFrom" in variable and "fileKeyRef" in variable["valueFrom"]
    ]
