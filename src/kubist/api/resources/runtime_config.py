"""`--runtime-config`: API versions and resources that a server serves, by kube-apiserver's rules."""

from __future__ import annotations

import copy
import dataclasses
import functools
import logging
import re
from collections.abc import Mapping
from typing import Any

from kubist.api.resources.resource import Resource, Resources, builtin, load_strategy
from kubist.api.resources.strategy import Strategy
from kubist.model.meta.api_versions import priority
from kubist.model.schema.catalog import retired
from kubist.model.versions import has_row

_POLICIES = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
_OPTIONAL: dict[tuple[str, str], tuple[Any, ...]] = {
    ("networking.k8s.io", "v1beta1"): (
        ("ipaddresses", "servicecidrs"),
        "v1.34+, unavailable in v1.37+",
        {"until": "1.37"},
    ),
    ("storage.k8s.io", "v1beta1"): (
        ("volumeattributesclasses",),
        "v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass",
        {"until": "1.37"},
    ),
    ("admissionregistration.k8s.io", "v1beta1"): (_POLICIES, ""),
    ("admissionregistration.k8s.io", "v1alpha1"): (_POLICIES, "v1.35+, unavailable in v1.38+"),
    ("resource.k8s.io", "v1beta2"): (
        ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
        "v1.36+, unavailable in v1.39+",
    ),
}
"""Built-in versions that are off by default, have the fields of the stable version and are stored in it: (group,
version) → resources, the releases in the deprecation warning, and `since` and `until` if limited."""

_MISSING = {
    ("certificates.k8s.io", "v1alpha1"): ("clustertrustbundles",),
    ("certificates.k8s.io", "v1beta1"): ("clustertrustbundles", "podcertificaterequests"),
    ("coordination.k8s.io", "v1alpha2"): ("leasecandidates",),
    ("coordination.k8s.io", "v1beta1"): ("leasecandidates",),
    ("internal.apiserver.k8s.io", "v1alpha1"): ("storageversions",),
    ("resource.k8s.io", "v1alpha3"): ("devicetaintrules", "resourcepoolstatusrequests"),
    ("resource.k8s.io", "v1beta1"): (
        "deviceclasses",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
    ),
    ("resource.k8s.io", "v1beta2"): ("devicetaintrules",),
    ("scheduling.k8s.io", "v1alpha2"): ("podgroups", "workloads"),
    ("storagemigration.k8s.io", "v1beta1"): ("storageversionmigrations",),
}
"""Resources of kube-apiserver v1.36 that are off by default and that Kubist does not have."""


def optional_versions() -> dict[tuple[str, str], tuple[str, ...]]:
    """(group, version) → plurals of all optional resources."""
    return {key: row[0] for key, row in _OPTIONAL.items() if has_row(row, 2)}


@functools.cache
def _optional() -> tuple[Resource, ...]:
    """Optional resources, shared by all servers."""
    stable = {(each.group, each.resource): each for each in builtin() if each.version == "v1"}
    return tuple(
        _derived(stable[group, plural], version)
        for (group, version), plurals in optional_versions().items()
        for plural in plurals
    )


class _Derived(Resource):
    """Resource that shares the rules of its stable version."""

    @functools.cached_property
    def strategy(self) -> Strategy:
        strategy = copy.copy(load_strategy(self.group, self.kind))
        since = _OPTIONAL[self.group, self.version][1]
        if since:
            warning = f"{self.api_version} {self.kind} is deprecated in {since}"
            strategy.deprecation = warning
        return strategy


def _derived(stable: Resource, version: str) -> Resource:
    values = {
        field.name: getattr(stable, field.name)
        for field in dataclasses.fields(Resource)
        if field.init and field.name not in ("representations", "negotiated")
    }
    return _Derived(**values | {"version": version, "preferred": False})


log = logging.getLogger("kubist")

_STAGES = {
    "api/all": re.compile(""),
    "api/ga": re.compile(r"v\d+$"),
    "api/beta": re.compile(r"v\d+beta\d+$"),
    "api/alpha": re.compile(r"v\d+alpha\d+$"),
}
_FAIRNESS = ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all")
"""Keys that decide whether flow control can read its objects, the most specific first."""
_CORE = re.compile(r"^(api/)?v1(?=/|$)")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True", ""), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def served_resources(settings: Mapping[str, str], *, fairness: bool = False) -> Resources:
    """Resources of a server with `--runtime-config`. Raises ValueError for values that kube-apiserver rejects, and for
    versions that Kubist does not have. `fairness`: whether API priority and fairness is on."""
    if not settings:
        return Resources()
    settings = _normalized(settings)
    _check(settings, fairness=fairness)
    every = _ordered((*builtin(), *_optional()))
    on = _enabled_versions(settings, {(each.group, each.version) for each in every})
    single = {key: _boolean(key, value) for key, value in settings.items() if key.count("/") == 2}
    for key, value in single.items():
        if value and _is_missing(key):
            raise _unavailable(key)
    _log_missing(on)
    visible = {
        each
        for each in every
        if single.get(f"{each.group}/{each.version}/{each.resource}", (each.group, each.version) in on)
    }
    hidden = frozenset(builtin()) - visible
    return Resources([each for each in every if each in visible or each in hidden], hidden)


def _normalized(settings: Mapping[str, str]) -> dict[str, str]:
    """Keys of the core group get the form `/v1` and `/v1/RESOURCE`. `api/legacy` no longer has an effect."""
    return {_CORE.sub("/v1", key): value for key, value in settings.items() if key != "api/legacy"}


def _check(settings: Mapping[str, str], *, fairness: bool) -> None:
    """Raises ValueError for invalid keys, unknown groups and contradictions."""
    errors = []
    if fairness:
        for key in _FAIRNESS:
            if settings.get(key) == "false":
                errors.append(
                    f"--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"
                )
            if key in settings:
                break
    if settings == {"api/all": "false"}:
        errors.append("invalid runtime-config with only api/all=false")
    else:
        errors += _key_errors(settings)
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _key_errors(settings: Mapping[str, str]) -> list[str]:
    registered = _registered()
    groups = {group for group, _ in registered}
    keys = [key for key in settings if key not in _STAGES]
    for key in keys:
        if key.count("/") not in (1, 2):
            return [f"runtime-config invalid key {key}"]
    unknown = sorted({"/".join(key.split("/")[:2]) for key in keys if key.split("/")[0] not in groups})
    if unknown:
        return [f"unknown api groups {','.join(unknown)}"]
    for key in _STAGES:
        if key in settings and settings[key] not in ("true", "false"):
            return [f"invalid value {key}={settings[key]}"]
    for key in keys:
        group, version, *resource = key.split("/")
        if (group, version) not in registered:
            group_version = f"{group}/{version}" if group else version
            return [f"group version {group_version} that has not been registered"]
        _boolean(key, settings[key])
        if resource and resource[0] != resource[0].lower():
            why = f'group/version/resource and resource is always lowercase plural, not "{resource[0]}"'
            return [f"invalid key {key}: {why}"]
    return []


def _registered() -> set[tuple[str, str]]:
    """Group-versions that kube-apiserver v1.36 knows, served or not."""
    older = {(group, version) for group, _, version in (name.rpartition("/") for name in retired())}
    return (
        older
        | _MISSING.keys()
        | optional_versions().keys()
        | {(each.group, each.version) for each in builtin()}
    )


def _enabled_versions(settings: Mapping[str, str], known: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Group-versions that are on, including those that Kubist does not have."""
    on = {(each.group, each.version) for each in builtin()}
    known = known | _MISSING.keys()
    for stage, pattern in _STAGES.items():
        if stage in settings:
            matching = {(group, version) for group, version in known if pattern.match(version)}
            on = on | matching if settings[stage] == "true" else on - matching
    for key, value in settings.items():
        group, _, version = key.partition("/")
        if key in _STAGES or "/" in version:
            continue
        if not _boolean(key, value):
            on.discard((group, version))
        elif (group, version) in _MISSING and (group, version) not in optional_versions():
            raise _unavailable(key)
        else:
            on.add((group, version))
    return on


def _is_missing(key: str) -> bool:
    group, version, resource = key.split("/")
    return resource in _MISSING.get((group, version), ())


def _unavailable(key: str) -> ValueError:
    return ValueError(
        f"--runtime-config={key}=true is not supported: this server has no {key}; docs/flags.md lists the versions "
        "that can be switched on"
    )


def _log_missing(on: set[tuple[str, str]]) -> None:
    for (group, version), plurals in _MISSING.items():
        if (group, version) in on:
            log.warning(
                "--runtime-config: Kubist does not implement all resources of %s/%s; missing: %s",
                group,
                version,
                ", ".join(plurals),
            )


def _boolean(key: str, value: str) -> bool:
    flag = _BOOLEANS.get(value)
    if flag is None:
        why = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise ValueError(f"invalid value of {key}: {value}, err: {why}")
    return flag


def _ordered(resources: tuple[Resource, ...]) -> list[Resource]:
    """Groups in the order of their first resource, with the versions of each group by priority."""
    groups = {each.group: place for place, each in reversed(list(enumerate(resources)))}
    return sorted(resources, key=lambda each: (groups[each.group], priority(each.version)))
