"""Built-in API versions that are off by default. They have the fields of the stable version, and are stored in it."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any

from kubist.api.resources.resource import Resource, builtin, load_strategy
from kubist.api.resources.strategy import Strategy
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
"""(group, version) → resources, the releases of the deprecation warning, `since` and `until` if they are limited."""

MISSING = {
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


def versions() -> dict[tuple[str, str], tuple[str, ...]]:
    """(group, version) → plurals of all optional resources."""
    return {key: row[0] for key, row in _OPTIONAL.items() if has_row(row, 2)}


@functools.cache
def optional() -> tuple[Resource, ...]:
    """Optional resources, shared by all servers."""
    stable = {(each.group, each.resource): each for each in builtin() if each.version == "v1"}
    return tuple(
        _derived(stable[group, plural], version)
        for (group, version), plurals in versions().items()
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
            strategy.deprecation = warning  # type: ignore[misc]
        return strategy


def _derived(stable: Resource, version: str) -> Resource:
    values = {
        field.name: getattr(stable, field.name)
        for field in dataclasses.fields(Resource)
        if field.init and field.name not in ("representations", "negotiated")
    }
    return _Derived(**values | {"version": version, "preferred": False})
