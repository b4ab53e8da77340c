"""Warnings for pods and templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from orjson import dumps

from kubist.api.kinds.core.podspec.affinity import PREFERRED, REQUIRED
from kubist.api.kinds.core.podspec.overlaps import overlapping_paths
from kubist.api.kinds.core.podspec.profiles import (
    APP_ARMOR_CONTAINER,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    app_armor_profile_of,
    app_armor_warning,
    have_profiles,
)
from kubist.api.kinds.core.podspec.visit import FIELDS, with_paths
from kubist.api.kinds.core.podspec.volume_claims import claim_spec_warnings
from kubist.api.kinds.shared.ip import ip_warnings
from kubist.api.kinds.shared.node_labels import DEPRECATED
from kubist.api.kinds.shared.resource_names import is_whole
from kubist.base.caching import bounded_cache, skip_validated
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.object import Object

Rule = Callable[[Any, str], Iterable[str]]
"""Rule that yields warnings about the value of a field, at its path."""
Rules = list[tuple[str, Rule]]

_MOST = 128
"""Maximum number of warnings about duplicate ports. One for each pair could exceed the size of a response."""

_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
_ANNOTATION_NAMES = frozenset(_ANNOTATIONS)
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
    """Warnings for a spec and its metadata. `path` is the template's path, empty for a pod."""
    prefix = f"{path}." if path else ""
    placement, references, rest = _rules_for(tuple(spec))
    warnings = _about(spec, placement, prefix)
    annotations = meta.get("annotations") or {}
    profiles = False
    if annotations:
        if not _ANNOTATION_NAMES.isdisjoint(annotations):
            warnings += _annotations(annotations, f"{prefix}metadata.annotations")
        profiles = have_profiles(annotations)
    if references:
        warnings += _about(spec, references, prefix)
    if (
        profiles
        and SECCOMP_POD in annotations
        and "seccompProfile" not in (spec.get("securityContext") or {})
    ):
        warnings.append(f"{prefix}metadata.annotations[{SECCOMP_POD}]: {_SECCOMP}")
    ports = []
    for field in FIELDS:
        if field not in spec:
            continue
        for index, container in enumerate(spec[field] or ()):
            if profiles:
                where = f"{prefix}metadata.annotations"
                warnings += _profiles(container, spec, annotations, where, bool(path))
            if resources := container.get("resources"):
                warnings += _resources(resources, f"{prefix}spec.{field}[{index}].resources")
            if (variables := container.get("env")) and _hides(variables):
                warnings += _hidden_variables(variables, f"{prefix}spec.{field}[{index}].env")
            if "ports" in container:
                ports.append(container["ports"])
    if ports:
        warnings += _ports(ports, spec, f"{prefix}spec")
    return warnings + _about(spec, rest, prefix)


_DEPRECATED = frozenset(DEPRECATED)


@bounded_cache(entries=1024, key_length=2048)
def _rules_for(fields: tuple[str, ...]) -> tuple[Rules, Rules, Rules]:
    """Warning rules that apply to a spec with these fields."""
    placement, references, rest = (
        [(field, rule) for field, rule in rules.items() if field in fields]
        for rules in (_PLACEMENT, _REFERENCES, _REST)
    )
    return placement, references, rest


def _about(spec: Object, rules: Rules, prefix: str) -> list[str]:
    """Warnings of the rules about their fields."""
    warnings: list[str] = []
    for field, rule in rules:
        warnings += rule(spec[field] or (), f"{prefix}spec.{field}")
    return warnings


def _node_selector(selector: dict[str, str], path: str) -> Iterable[str]:
    """Warns of deprecated node labels."""
    if _DEPRECATED.isdisjoint(selector):
        return ()
    return [f"{path}[{label}]: {DEPRECATED[label]}" for label in selector if label in DEPRECATED]


def _node_affinity(affinity: Object, path: str) -> Iterator[str]:
    rules = (affinity or {}).get("nodeAffinity") or {}
    where = f"{path}.nodeAffinity"
    for index, term in enumerate((rules.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _node_term(term, f"{where}.{REQUIRED}.nodeSelectorTerms[{index}]", check_values=False)
    for index, weighted in enumerate(rules.get(PREFERRED) or ()):
        term = weighted.get("preference") or {}
        yield from _node_term(term, f"{where}.{PREFERRED}[{index}].preference", check_values=True)


def _spread(constraints: list[Object], path: str) -> Iterator[str]:
    for index, constraint in enumerate(constraints):
        key = constraint.get("topologyKey", "")
        if key in DEPRECATED:
            yield f"{path}[{index}].topologyKey: {key} is {DEPRECATED[key]}"
        if "labelSelector" not in constraint:
            yield f"{path}[{index}].labelSelector: {_NO_SELECTOR}"


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
    warnings = []
    for index, volume in enumerate(volumes):
        warnings += [
            f"{path}[{index}].{_SHOWN.get(source, source)}: {why}"
            for source, why in _VOLUMES.items()
            if source in volume
        ]
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim is not None:
            where = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            warnings += claim_spec_warnings(claim.get("spec") or {}, where)
    return warnings + overlapping_paths(volumes)


def _duplicates(items: list[Object], path: str, key: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(key, "")
        if value in seen:
            yield f"{path}[{index}].{key}: duplicate {key} {quoted(value)}"
        seen.add(value)


def _aliases(aliases: list[Object], path: str) -> Iterator[str]:
    return _duplicates(aliases, path, "ip")


def _pull_secrets(secrets: list[Object], path: str) -> Iterator[str]:
    yield from _duplicates(secrets, path, "name")
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{path}[{index}].name: invalid empty name ""'


def _overhead(amounts: dict[str, str], path: str) -> list[str]:
    fractions = [name for name in _BYTES if name in amounts and not is_whole(amounts[name])]
    return [_fraction(amounts[name], f"{path}[{name}]") for name in fractions]


def _fraction(text: str, path: str) -> str:
    """Warning about a fractional number of bytes."""
    return f"{path}: fractional byte value {quoted(text)} is invalid, must be an integer"


@skip_validated(dumps)
def _resources(resources: Object, path: str) -> list[str]:
    return [
        _fraction(resources[field][name], f"{path}.{field}[{name}]")
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


def _hides(variables: list[Object]) -> bool:
    """Whether two variables may have the same name. Also True if a variable has no name."""
    try:
        return len({variable["name"] for variable in variables}) < len(variables)
    except KeyError:
        return True


def _hidden_variables(variables: list[Object], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        if name in seen:
            reference = f"$({name})"
            if "valueFrom" in variable or value == reference or reference not in value:
                quoted_name = quoted(name)
                yield (
                    f"{path}[{index}]: hides previous definition of {quoted_name}, "
                    "which may be dropped when using apply"
                )
        seen.add(name)


class _SamePort:
    """Ports with one containerPort and protocol, indexed by host address, so that only clashing ports are compared."""

    __slots__ = ("at", "by_host")

    def __init__(self) -> None:
        self.at: dict[tuple[str, int], list[int]] = {}
        self.by_host: dict[tuple[int, bool], list[int]] = {}

    def add(self, index: int, host_ip: str, host_port: int) -> None:
        self.at.setdefault((host_ip, host_port), []).append(index)
        self.by_host.setdefault((host_port, bool(host_ip)), []).append(index)

    def clashes(self, host_ip: str, host_port: int) -> list[tuple[int, str]]:
        """(index, relation) of the ports that another port would clash with, in order."""
        relations = dict.fromkeys(self.at.get((host_ip, host_port), ()), "duplicate")
        if not host_port:
            others = [indexes for place, indexes in self.at.items() if place != (host_ip, host_port)]
        else:
            others = [self.by_host.get((0, has_ip), []) for has_ip in (False, True)]
            for index in self.by_host.get((host_port, not host_ip), ()):
                relations[index] = "dangerously ambiguous"
        for indexes in others:
            relations.update(dict.fromkeys(indexes, "overlapping"))
        return sorted(relations.items())


@skip_validated(dumps, key_length=2048)
def _ports(_of_containers: list[Any], spec: Object, path: str) -> list[str]:
    """Warnings about ports. Whether there are any depends only on the first argument, the port lists of all
    containers."""
    return list(islice(_port_clashes(with_paths(spec, path)), _MOST))


def _port_clashes(containers: list[tuple[Object, str]]) -> Iterator[str]:
    ports = [
        (port, f"{where}.ports[{index}]")
        for container, where in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    seen: dict[tuple[int, str], _SamePort] = {}
    for index, (port, where) in enumerate(ports):
        host_ip, host_port = port.get("hostIP", ""), port.get("hostPort", 0)
        if host_ip and not host_port:
            yield f"{where}: hostIP set without hostPort: {_format_port(port)}"
        same = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), _SamePort())
        for other, relation in same.clashes(host_ip, host_port):
            yield f"{where}: {relation} port definition with {ports[other][1]}"
        same.add(index, host_ip, host_port)
    by_name: dict[str, str] = {}
    for port, where in ports:
        if name := port.get("name"):
            first = by_name.setdefault(name, where)
            if first != where:
                yield (
                    f"{where}: duplicate port name {quoted(name)} with {first}, services and probes that "
                    f"select ports by name will use {first}"
                )


def _format_port(port: Object) -> str:
    numbers = f"HostPort:{port.get('hostPort', 0)} ContainerPort:{port.get('containerPort', 0)}"
    texts = f"Protocol:{port.get('protocol', '')} HostIP:{port.get('hostIP', '')}"
    return f"{{Name:{port.get('name', '')} {numbers} {texts}}}"


def _selectors(affinity: Object, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = (affinity or {}).get(kind) or {}
        for index, term in enumerate(rules.get(REQUIRED) or ()):
            if "labelSelector" not in term:
                yield f"{path}.{kind}.{REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighted in enumerate(rules.get(PREFERRED) or ()):
            if "labelSelector" not in (weighted.get("podAffinityTerm") or {}):
                where = f"{path}.{kind}.{PREFERRED}[{index}].podAffinityTerm"
                yield f"{where}.labelSelector: {_NO_SELECTOR}"


def _grace(seconds: int, path: str) -> Iterable[str]:
    if not seconds or seconds > 0:
        return ()
    return (f"{path}: must be >= 0; negative values are invalid and will be treated as 1",)


def _name_servers(config: Object, path: str) -> Iterator[str]:
    for index, server in enumerate((config or {}).get("nameservers") or ()):
        yield from ip_warnings(server, f"{path}.nameservers[{index}]")


def _alias_addresses(aliases: list[Object], path: str) -> Iterator[str]:
    for index, alias in enumerate(aliases):
        yield from ip_warnings(alias.get("ip", ""), f"{path}[{index}].ip")


_PLACEMENT: dict[str, Rule] = {
    "nodeSelector": _node_selector,
    "affinity": _node_affinity,
    "topologySpreadConstraints": _spread,
}
_REFERENCES: dict[str, Rule] = {
    "volumes": _volumes,
    "hostAliases": _aliases,
    "imagePullSecrets": _pull_secrets,
    "overhead": _overhead,
}
_REST: dict[str, Rule] = {
    "terminationGracePeriodSeconds": _grace,
    "affinity": _selectors,
    "dnsConfig": _name_servers,
    "hostAliases": _alias_addresses,
}
