"""Deprecated node labels, with their warnings."""

from __future__ import annotations

from typing import Any

DEPRECATED = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def selector_warnings(selector: dict[str, Any] | None, path: str) -> list[str]:
    """Warnings for a label selector over nodes."""
    if not selector:
        return []
    warnings = [
        f"{path}.matchExpressions[{index}].key: {requirement['key']} is {DEPRECATED[requirement['key']]}"
        for index, requirement in enumerate(selector.get("matchExpressions") or ())
        if requirement.get("key") in DEPRECATED
    ]
    warnings += [
        f"{path}.matchLabels.{label}: {DEPRECATED[label]}"
        for label in selector.get("matchLabels") or ()
        if label in DEPRECATED
    ]
    return warnings
