"""What is better not done in a pod or a template, though it is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from kubist.kinds.core.podspec.affinity import PREFERRED, REQUIRED
from kubist.kinds.core.podspec.overlaps import overlapping_paths
from kubist.kinds.core.podspec.profiles import (
    APP_ARMOR_CONTAINER,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    app_armor_profile_of,
    app_armor_warning,
)
from kubist.kinds.core.podspec.visit import with_paths
from kubist.kinds.shared.ip import ip_warnings
from kubist.kinds.shared.nodelabels import DEPRECATED
from kubist.kinds.shared.resourcenames import is_whole
from kubist.meta import names
from kubist.meta.fields import quoted

Object = dict[str, Any]

_MOST = 128
"""Of every two ports that are the same one is warned of; an answer has no room for more than this anyway."""

_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN = {"storageos": "storageOS"}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_BYTES = ("memory", "ephemeral-storage")


def pod_spec_warnings(spec: Object, meta: Object, path: str = "") -> list[str]:
    """Warnings for a spec and its metadata; `path` is the template's, empty for a pod."""
    prefix = f"{path}." if path else ""
    annotations = meta.get("annotations") or {}
    at = f"{prefix}spec"
    containers = with_paths(spec, at)
    warnings = [*_node_labels(spec, at)]
    warnings += _annotations(annotations, f"{prefix}metadata.annotations")
    if "volumes" in spec:
        warnings += _volumes(spec["volumes"], f"{at}.volumes")
    warnings += _duplicates(spec, at)
    if "overhead" in spec:
        amounts = spec["overhead"]
        fractions = [name for name in _BYTES if name in amounts and not is_whole(amounts[name])]
        warnings += [_fraction(amounts[name], f"{at}.overhead[{name}]") for name in fractions]
    if SECCOMP_POD in annotations and "seccompProfile" not in (spec.get("securityContext") or {}):
        warnings.append(f"{prefix}metadata.annotations[{SECCOMP_POD}]: {_SECCOMP}")
    for container, where in containers:
        if annotations:
            warnings += _profiles(container, spec, annotations, f"{prefix}metadata.annotations", bool(path))
        warnings += _resources(container, where)
        if len(container.get("env") or ()) > 1:
            warnings += _hidden_variables(container["env"], f"{where}.env")
    if any("ports" in container for container, _ in containers):
        warnings += islice(_ports(containers), _MOST)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{at}.terminationGracePeriodSeconds: {why}")
    if "affinity" in spec:
        warnings += _selectors(spec["affinity"], f"{at}.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        warnings += ip_warnings(server, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        warnings += ip_warnings(alias.get("ip", ""), f"{at}.hostAliases[{index}].ip")
    return warnings


def _node_labels(spec: Object, path: str) -> Iterator[str]:
    """Labels of nodes that have been replaced by others."""
    for label in spec.get("nodeSelector") or ():
        if label in DEPRECATED:
            yield f"{path}.nodeSelector[{label}]: {DEPRECATED[label]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    where = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _node_term(term, f"{where}.{REQUIRED}.nodeSelectorTerms[{index}]", check_values=False)
    for index, weighted in enumerate(affinity.get(PREFERRED) or ()):
        term = weighted.get("preference") or {}
        yield from _node_term(term, f"{where}.{PREFERRED}[{index}].preference", check_values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{path}.topologySpreadConstraints[{index}]"
        key = constraint.get("topologyKey", "")
        if key in DEPRECATED:
            yield f"{where}.topologyKey: {key} is {DEPRECATED[key]}"
        if "labelSelector" not in constraint:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"


def _node_term(term: Object, path: str, *, check_values: bool) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in DEPRECATED:
            yield f"{path}.matchExpressions[{index}].key: {key} is {DEPRECATED[key]}"
        if check_values:
            for position, value in enumerate(expression.get("values") or ()):
                where = f"{path}.matchExpressions[{index}].values[{position}]"
                for problem in names.label_value(value):
                    yield f"{where}: {value} is invalid, {problem}"


def _annotations(annotations: dict[str, str], path: str) -> list[str]:
    return [f"{path}[{key}]: {why}" for key, why in _ANNOTATIONS.items() if key in annotations]


def _volumes(volumes: list[Object], path: str) -> list[str]:
    from kubist.kinds.core.persistentvolumeclaim import claim_spec_warnings

    warnings = []
    for index, volume in enumerate(volumes):
        for source in _VOLUMES.keys() & volume.keys():
            warnings.append(f"{path}[{index}].{_SHOWN.get(source, source)}: {_VOLUMES[source]}")
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim is not None:
            where = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            warnings += claim_spec_warnings(claim.get("spec") or {}, where)
    return warnings + overlapping_paths(volumes)


def _duplicates(spec: Object, path: str) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(field) or ()):
            value = item.get(key, "")
            if value in seen:
                yield f"{path}.{field}[{index}].{key}: duplicate {key} {quoted(value)}"
            seen.add(value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _fraction(text: str, path: str) -> str:
    """Parts of a byte."""
    return f"{path}: fractional byte value {quoted(text)} is invalid, must be an integer"


def _resources(container: Object, path: str) -> list[str]:
    resources = container.get("resources")
    if not resources:
        return []
    return [
        _fraction(resources[field][name], f"{path}.resources.{field}[{name}]")
        for name in _BYTES
        for field in ("limits", "requests")
        if field in resources and name in resources[field] and not is_whole(resources[field][name])
    ]


def _profiles(
    container: Object, spec: Object, annotations: dict[str, str], path: str, is_template: bool
) -> Iterator[str]:
    name, context = container.get("name", ""), container.get("securityContext") or {}
    key = SECCOMP_CONTAINER + name
    if key in annotations and "seccompProfile" not in context:
        yield f"{path}[{key}]: {_SECCOMP}"
    key = APP_ARMOR_CONTAINER + name
    if is_template and key in annotations and "appArmorProfile" not in context:
        of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
        if of_pod is None or of_pod != app_armor_profile_of(annotations[key]):
            yield app_armor_warning(f"{path}[{key}]")


def _hidden_variables(variables: list[Object], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        if name in seen:
            reference = f"$({name})"
            if "valueFrom" in variable or value == reference or reference not in value:
                shown = quoted(name)
                yield (
                    f"{path}[{index}]: hides previous definition of {shown}, "
                    "which may be dropped when using apply"
                )
        seen.add(name)


def _ports(containers: list[tuple[Object, str]]) -> Iterator[str]:
    ports = [
        (port, f"{where}.ports[{index}]")
        for container, where in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    seen: dict[tuple[int, str], list[tuple[Object, str]]] = {}
    for port, where in ports:
        host_ip, host_port = port.get("hostIP", ""), port.get("hostPort", 0)
        if host_ip and not host_port:
            yield f"{where}: hostIP set without hostPort: {_shown(port)}"
        same = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for other, other_where in same:
            other_ip, other_port = other.get("hostIP", ""), other.get("hostPort", 0)
            if (host_ip, host_port) == (other_ip, other_port):
                yield f"{where}: duplicate port definition with {other_where}"
            elif not host_port or not other_port:
                yield f"{where}: overlapping port definition with {other_where}"
            elif host_port == other_port and bool(host_ip) != bool(other_ip):
                yield f"{where}: dangerously ambiguous port definition with {other_where}"
        same.append((port, where))
    by_name: dict[str, str] = {}
    for port, where in ports:
        if name := port.get("name"):
            first = by_name.setdefault(name, where)
            if first != where:
                yield (
                    f"{where}: duplicate port name {quoted(name)} with {first}, services and probes that "
                    f"select ports by name will use {first}"
                )


def _shown(port: Object) -> str:
    numbers = f"HostPort:{port.get('hostPort', 0)} ContainerPort:{port.get('containerPort', 0)}"
    texts = f"Protocol:{port.get('protocol', '')} HostIP:{port.get('hostIP', '')}"
    return f"{{Name:{port.get('name', '')} {numbers} {texts}}}"


def _selectors(affinity: Object, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get(REQUIRED) or ()):
            if "labelSelector" not in term:
                yield f"{path}.{kind}.{REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighted in enumerate(rules.get(PREFERRED) or ()):
            if "labelSelector" not in (weighted.get("podAffinityTerm") or {}):
                where = f"{path}.{kind}.{PREFERRED}[{index}].podAffinityTerm"
                yield f"{where}.labelSelector: {_NO_SELECTOR}"
