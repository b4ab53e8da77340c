"""Validation of a PodSpec. The rules are in the table `_RULES`, in the order of the reported errors."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.kinds.core.podspec.affinity import validate_affinity
from kubist.api.kinds.core.podspec.containers import (
    WINDOWS_OPTIONS,
    PodContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from kubist.api.kinds.core.podspec.dns import (
    POLICIES,
    validate_dns_config,
    validate_dns_policy,
    validate_host_aliases,
    validate_hostname_override,
)
from kubist.api.kinds.core.podspec.env import FILE_KEYS
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.resources import (
    NO_CLAIMS,
    ClaimNames,
    validate_pod_resources,
    validate_requirements,
    validate_resource_claims,
)
from kubist.api.kinds.core.podspec.scheduling import (
    validate_readiness_gates,
    validate_scheduling_gates,
    validate_spread,
    validate_tolerations,
)
from kubist.api.kinds.core.podspec.security import validate_pod_security_context
from kubist.api.kinds.core.podspec.visit import with_paths
from kubist.api.kinds.core.podspec.volumes import validate_volumes
from kubist.api.kinds.core.podspec.windows import (
    validate_host_process,
    validate_linux_pod,
    validate_windows_pod,
)
from kubist.base.caching import bounded_cache
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, forbidden, invalid, not_found, not_supported, required
from kubist.model.meta.labels import validate_labels
from kubist.model.meta.object import Object

Errors = list[FieldError]
Rule = Callable[[Object, str, PodContext], Errors]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_MAX_INT32 = (1 << 31) - 1


def validate_pod_spec(spec: Object, meta: Object | None, path: str, options: Options) -> Errors:
    """Errors of a PodSpec. `meta` is the metadata of the pod, None for a template."""
    errors: Errors = []
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    context = PodContext(spec, meta, options)
    for rule in _rules_for(tuple(spec)):
        if found := rule(spec, path, context):
            errors += found
    if FILE_KEYS in context.features:
        errors += _file_key_volumes(spec, path)
    return errors


@bounded_cache(entries=1024, key_length=2048)
def _rules_for(fields: tuple[str, ...]) -> list[Rule]:
    """Rules that apply to a spec with these fields, in order."""
    return [rule for wanted, rule in _RULES if not wanted or not wanted.isdisjoint(fields)]


def _volumes(spec: Object, path: str, context: PodContext) -> Errors:
    pod_name = (context.meta or {}).get("name") or ""
    context.volumes, errors = validate_volumes(spec["volumes"], pod_name, f"{path}.volumes", context.options)
    return errors


def _claims(spec: Object, path: str, context: PodContext) -> Errors:
    claims = spec["resourceClaims"] or []
    context.claims = ClaimNames(claim["name"] for claim in claims if claim.get("name"))
    annotations = (context.meta or {}).get("annotations") or {}
    return validate_resource_claims(claims, annotations, f"{path}.resourceClaims")


def _containers(spec: Object, path: str, context: PodContext) -> Errors:
    return validate_containers(spec.get("containers"), context, f"{path}.containers")


def _init_containers(spec: Object, path: str, context: PodContext) -> Errors:
    regular, init = spec.get("containers") or [], spec["initContainers"] or []
    return validate_init_containers(init, regular, context, f"{path}.initContainers")


def _ephemeral_containers(spec: Object, path: str, context: PodContext) -> Errors:
    others = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    ephemeral = spec["ephemeralContainers"] or []
    return validate_ephemeral_containers(ephemeral, others, context, f"{path}.ephemeralContainers")


def _resources(spec: Object, path: str, context: PodContext) -> Errors:
    return validate_pod_resources(spec, context.claims, f"{path}.resources", context.options)


def _host_ports(spec: Object, path: str, context: PodContext) -> Errors:
    """Validates that hostPort equals containerPort with hostNetwork. Templates may omit hostPort."""
    if not spec["hostNetwork"]:
        return []
    why = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}.containers[{index}].ports[{position}].hostPort", port.get("hostPort", 0), why)
        for index, container in enumerate(spec.get("containers") or ())
        for position, port in enumerate(container.get("ports") or ())
        if (context.options.is_pod or port.get("hostPort"))
        and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def _policies(spec: Object, path: str, _context: PodContext) -> Errors:
    errors: Errors = []
    policy = spec.get("restartPolicy", "")
    if policy not in RESTART_POLICIES:
        where = f"{path}.restartPolicy"
        errors.append(not_supported(where, policy, RESTART_POLICIES) if policy else required(where))
    if spec.get("dnsPolicy") not in POLICIES:
        errors += validate_dns_policy(spec.get("dnsPolicy", ""), f"{path}.dnsPolicy")
    return errors


def _node_selector(spec: Object, path: str, _context: PodContext) -> Errors:
    return validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")


def _security_context(spec: Object, path: str, context: PodContext) -> Errors:
    if not spec.get("securityContext") and "shareProcessNamespace" not in spec:
        return []
    return validate_pod_security_context(spec, f"{path}.securityContext", context.options)


def _affinity(spec: Object, path: str, context: PodContext) -> Errors:
    return validate_affinity(spec["affinity"], f"{path}.affinity", context.options)


def _dns_config(spec: Object, path: str, _context: PodContext) -> Errors:
    policy = spec.get("dnsPolicy", "")
    if "dnsConfig" not in spec and policy != "None":
        return []
    return validate_dns_config(spec.get("dnsConfig"), policy, f"{path}.dnsConfig")


def _readiness_gates(spec: Object, path: str, _context: PodContext) -> Errors:
    return validate_readiness_gates(spec["readinessGates"], f"{path}.readinessGates")


def _scheduling_gates(spec: Object, path: str, _context: PodContext) -> Errors:
    return validate_scheduling_gates(spec["schedulingGates"], f"{path}.schedulingGates")


def _spread(spec: Object, path: str, context: PodContext) -> Errors:
    constraints = spec["topologySpreadConstraints"]
    return validate_spread(constraints, f"{path}.topologySpreadConstraints", context.options)


def _host(spec: Object, path: str, context: PodContext) -> Errors:
    """Validates the use of host resources: Windows host processes, and hostUsers with other host namespaces."""
    errors: Errors = []
    if WINDOWS_OPTIONS in context.features or WINDOWS_OPTIONS in (spec.get("securityContext") or ()):
        errors += validate_host_process(spec, path, context.options)
    if spec.get("hostUsers") is False:
        why = "when `hostUsers` is false"
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                errors.append(forbidden(f"{path}.{shown}", why))
        if not context.options.devices_with_user_namespaces:
            errors += [
                forbidden(f"{where}.volumeDevices", why)
                for container, where in with_paths(spec, path)
                if container.get("volumeDevices")
            ]
    return errors


def _named(field: str, rule: Callable[[str], list[str]], *, optional: bool = True) -> Rule:
    """Rule for a field that holds a name. With `optional` the field may be empty."""

    def validate(spec: Object, path: str, _context: PodContext) -> Errors:
        value = spec[field]
        if optional and not value:
            return []
        return [invalid(f"{path}.{field}", value, problem) for problem in rule(value)]

    return validate


def _hostname_override(spec: Object, path: str, _context: PodContext) -> Errors:
    return validate_hostname_override(spec, f"{path}.hostnameOverride")


def _deadline(spec: Object, path: str, _context: PodContext) -> Errors:
    deadline = spec["activeDeadlineSeconds"]
    if deadline is None or 1 <= deadline <= _MAX_INT32:
        return []
    why = f"must be between 1 and {_MAX_INT32}, inclusive"
    return [invalid(f"{path}.activeDeadlineSeconds", deadline, why)]


def _tolerations(spec: Object, path: str, _context: PodContext) -> Errors:
    return validate_tolerations(spec["tolerations"], f"{path}.tolerations")


def _host_aliases(spec: Object, path: str, _context: PodContext) -> Errors:
    return validate_host_aliases(spec["hostAliases"], f"{path}.hostAliases")


def _preemption(spec: Object, path: str, _context: PodContext) -> Errors:
    policy = spec["preemptionPolicy"]
    if policy is None or policy in _PREEMPTION_POLICIES:
        return []
    where = f"{path}.preemptionPolicy"
    return [not_supported(where, policy, _PREEMPTION_POLICIES) if policy else required(where)]


def _overhead(spec: Object, path: str, context: PodContext) -> Errors:
    return validate_requirements({"limits": spec["overhead"]}, NO_CLAIMS, f"{path}.overhead", context.options)


def _operating_system(spec: Object, path: str, _context: PodContext) -> Errors:
    match spec["os"].get("name", ""):
        case "":
            return [required(f"{path}.os.name")]
        case "linux":
            return validate_linux_pod(spec, path)
        case "windows":
            return validate_windows_pod(spec, path)
        case other:
            return [not_supported(f"{path}.os", other, ("linux", "windows"))]


_RULES: tuple[tuple[frozenset[str], Rule], ...] = tuple(
    (frozenset(fields.split()), rule)
    for fields, rule in (
        ("volumes", _volumes),
        ("resourceClaims", _claims),
        ("", _containers),
        ("initContainers", _init_containers),
        ("ephemeralContainers", _ephemeral_containers),
        ("resources", _resources),
        ("hostNetwork", _host_ports),
        ("", _policies),
        ("nodeSelector", _node_selector),
        ("securityContext shareProcessNamespace", _security_context),
        ("affinity", _affinity),
        ("dnsConfig dnsPolicy", _dns_config),
        ("readinessGates", _readiness_gates),
        ("schedulingGates", _scheduling_gates),
        ("topologySpreadConstraints", _spread),
        ("", _host),
        ("hostnameOverride", _hostname_override),
        ("serviceAccountName", _named("serviceAccountName", names.dns_subdomain)),
        ("nodeName", _named("nodeName", names.dns_subdomain)),
        ("activeDeadlineSeconds", _deadline),
        ("hostname", _named("hostname", names.dns_label)),
        ("subdomain", _named("subdomain", names.dns_label)),
        ("tolerations", _tolerations),
        ("hostAliases", _host_aliases),
        ("priorityClassName", _named("priorityClassName", names.dns_subdomain)),
        ("runtimeClassName", _named("runtimeClassName", names.dns_subdomain, optional=False)),
        ("preemptionPolicy", _preemption),
        ("overhead", _overhead),
        ("os", _operating_system),
    )
)
"""Rules in the order of the reported errors. A rule applies to specs with one of its fields, or to all specs if it
names none."""


def _file_key_volumes(spec: Object, path: str) -> Errors:
    """Validates fileKeyRef volumes: they must exist and be emptyDir volumes."""
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
    """fileKeyRefs of a container's variables, with their indexes."""
    return [
        (index, variable["valueFrom"]["fileKeyRef"])
        for index, variable in enumerate(container.get("env") or ())
        if "valueFrom" in variable and "fileKeyRef" in variable["valueFrom"]
    ]
