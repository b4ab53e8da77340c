"""Strictness of PodSpec validation. Updates may keep errors that the stored object already has.

Rules become stricter over time, but objects that were valid when they were written must remain updatable.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Options:
    """Exceptions from PodSpec validation. The defaults are the rules for a new template."""

    is_pod: bool = False
    """Whether the spec belongs to a Pod, which has stricter rules than a template."""
    allow_privileged: bool = True
    """Whether the server allows privileged containers (`--allow-privileged`)."""
    indivisible_huge_pages: bool = False
    invalid_deletion_cost: bool = False
    invalid_affinity_selector_values: bool = False
    invalid_node_affinity_values: bool = False
    invalid_spread_selectors: bool = False
    repeated_spread_label_keys: bool = False
    non_local_token_paths: bool = False
    namespaced_sysctls_on_host: bool = False
    restart_on_resize_of_init_containers: bool = False
    any_selinux_change_policy: bool = False
    devices_with_user_namespaces: bool = False


CURRENT = {
    (is_pod, allow_privileged): Options(is_pod=is_pod, allow_privileged=allow_privileged)
    for is_pod in (False, True)
    for allow_privileged in (False, True)
}
"""Rules without exceptions for a stored object. Keys: whether the spec belongs to a Pod, and whether the server allows
privileged containers."""
