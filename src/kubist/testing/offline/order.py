"""Order in which manifests are checked: first the objects on which the rules for other objects depend."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.model.meta.object import Object
from kubist.testing.offline.manifests import Manifest

POLICY_GROUP = "admissionregistration.k8s.io"
RBAC_GROUP = "rbac.authorization.k8s.io"
CRD = "CustomResourceDefinition"
_POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
POLICY_KINDS = frozenset(f"{kind}{suffix}" for kind in _POLICIES for suffix in ("", "Binding"))
_ROLES = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
_EARLY = (
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "IngressClass",
    "DeviceClass",
    "ServiceCIDR",
    "IPAddress",
    "LimitRange",
    "ServiceAccount",
    "Service",
)
"""Kinds that admission and validation of other objects read. They are stored, so that later objects see them."""

NAMESPACES, CRDS, ROLES, PARAMETERS, POLICIES, EARLY, REST = range(7)
KindKey = tuple[str, str]


def parameter_kinds(policies: Iterable[Object]) -> set[KindKey]:
    """apiVersion and kind of the parameters of policies."""
    kinds = set()
    for policy in policies:
        spec = policy.get("spec")
        kind = spec.get("paramKind") if isinstance(spec, dict) else None
        if isinstance(kind, dict):
            kinds.add((str(kind.get("apiVersion")), str(kind.get("kind"))))
    return kinds


def is_policy(manifest: Manifest) -> bool:
    return manifest.kind in POLICY_KINDS and manifest.api_version.startswith(f"{POLICY_GROUP}/")


def is_crd(manifest: Manifest) -> bool:
    return manifest.kind == CRD and manifest.api_version.startswith("apiextensions.k8s.io/")


def stage(manifest: Manifest, parameters: set[KindKey]) -> int:
    """Stage in which a manifest is checked."""
    group = manifest.api_version.rpartition("/")[0]
    if manifest.kind == "Namespace" and not group:
        return NAMESPACES
    if is_crd(manifest):
        return CRDS
    if is_policy(manifest):
        return POLICIES
    if group == RBAC_GROUP and manifest.kind in _ROLES:
        return ROLES
    if (manifest.api_version, manifest.kind) in parameters:
        return PARAMETERS
    if manifest.kind in _EARLY and (not group or group.endswith(".k8s.io")):
        return EARLY
    return REST


def in_order(manifests: Iterable[Manifest], parameters: set[KindKey]) -> list[tuple[int, Manifest]]:
    """Manifests with their stages. Roles come before their bindings, ServiceAccounts after classes, and so on."""
    ranks = {kind: rank for rank, kind in enumerate((*_ROLES, *sorted(POLICY_KINDS, key=len), *_EARLY))}
    staged = [(stage(manifest, parameters), manifest) for manifest in manifests]
    return sorted(staged, key=lambda each: (each[0], ranks.get(each[1].kind, 0) if each[0] != REST else 0))
