"""Validation options for updates: the errors that the stored object has and may keep."""

from __future__ import annotations

from kubist.api.kinds.core.podspec import paths, resources, scheduling, security
from kubist.api.kinds.core.podspec.annotations import has_invalid_deletion_cost
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.visit import containers_of
from kubist.model.meta import labels
from kubist.model.meta.object import Object


def options_for_update(old: Object, *, is_pod: bool, allow_privileged: bool) -> Options:
    """Options for an update of `old`, a Pod or a PodTemplateSpec."""
    spec = old.get("spec") or {}
    affinity = spec.get("affinity") or {}
    constraints = spec.get("topologySpreadConstraints") or ()
    context = spec.get("securityContext") or {}
    containers = containers_of(spec)
    return Options(
        is_pod=is_pod,
        allow_privileged=allow_privileged,
        indivisible_huge_pages=any(
            resources.has_indivisible_huge_pages(requirements)
            for requirements in (
                {"limits": spec.get("overhead")},
                *(container.get("resources") or {} for container in containers),
            )
        ),
        invalid_deletion_cost=has_invalid_deletion_cost(old.get("metadata") or {}),
        invalid_affinity_selector_values=any(
            labels.validate_selector(term.get(selector), "")
            for term in _affinity_terms(affinity)
            for selector in ("labelSelector", "namespaceSelector")
        ),
        invalid_node_affinity_values=any(
            labels.has_invalid_values(term) for term in _required_node_terms(affinity)
        ),
        invalid_spread_selectors=any(
            labels.validate_selector(c.get("labelSelector"), "") for c in constraints
        ),
        repeated_spread_label_keys=any(
            scheduling.validate_label_keys(c.get("matchLabelKeys"), None, c.get("labelSelector"), "")
            for c in constraints
        ),
        non_local_token_paths=any(
            paths.local_non_reserved(source["serviceAccountToken"].get("path", ""), "")
            for volume in spec.get("volumes") or ()
            for source in (volume.get("projected") or {}).get("sources") or ()
            if "serviceAccountToken" in source
        ),
        namespaced_sysctls_on_host=any(
            security.host_sysctl(sysctl.get("name", ""), spec, "") for sysctl in context.get("sysctls") or ()
        ),
        restart_on_resize_of_init_containers=any(
            policy.get("restartPolicy") == "RestartContainer"
            for container in spec.get("initContainers") or ()
            if container.get("restartPolicy") != "Always"
            for policy in container.get("resizePolicy") or ()
        ),
        any_selinux_change_policy="seLinuxChangePolicy" in context,
        devices_with_user_namespaces=spec.get("hostUsers") is False
        and any(container.get("volumeDevices") for container in containers),
    )


def _affinity_terms(affinity: Object) -> list[Object]:
    terms: list[Object] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [
            weighted.get("podAffinityTerm") or {}
            for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ]
    return terms


def _required_node_terms(affinity: Object) -> list[Object]:
    required = (affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms: list[Object] = required.get("nodeSelectorTerms") or []
    return terms
