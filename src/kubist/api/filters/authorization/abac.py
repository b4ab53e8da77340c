"""ABAC authorization mode: one policy per line of a file, each with a subject and its permissions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.resources.context import Rules, User

READING = ("get", "list", "watch")
VERSIONS = ("abac.authorization.kubernetes.io/v1beta1",)

Policy = dict[str, Any]


class ABAC:
    """Policies of `--authorization-policy-file`."""

    def __init__(self, path: str) -> None:
        self._policies: list[Policy] = []
        for number, line in enumerate(Path(path).read_text().splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                self._policies.append(_read(json.loads(line)))
            except (ValueError, AttributeError) as error:
                raise ValueError(f"error reading policy file {path}, line {number}: {error}") from None

    async def decide(self, attributes: AuthorizationQuery) -> tuple[bool | None, str]:
        reading = attributes.verb in READING
        for policy in self._policies:
            if _is_for(policy, attributes.user) and (reading or not policy.get("readonly")):
                if attributes.is_resource:
                    if (
                        policy.get("namespace", "") in ("*", attributes.namespace)
                        and policy.get("resource", "") in ("*", attributes.resource)
                        and policy.get("apiGroup", "") in ("*", attributes.group)
                    ):
                        return True, ""
                elif _is_path(policy.get("nonResourcePath", ""), attributes.path):
                    return True, ""
        return None, "No policy matched."

    async def rules(self, user: User, namespace: str) -> Rules:
        rules = Rules([], [])
        for policy in self._policies:
            if not _is_for(policy, user) or policy.get("namespace", "") not in ("*", namespace):
                continue
            verbs = list(READING) if policy.get("readonly") else ["*"]
            if policy.get("resource"):
                groups, resources = [policy.get("apiGroup", "")], [policy["resource"]]
                rules.resource_rules.append({"verbs": verbs, "apiGroups": groups, "resources": resources})
            if policy.get("nonResourcePath"):
                rules.non_resource_rules.append(
                    {"verbs": verbs, "nonResourceURLs": [policy["nonResourcePath"]]}
                )
        return rules


def _read(line: dict[str, Any]) -> Policy:
    if "apiVersion" in line or "kind" in line:
        if line.get("apiVersion") not in VERSIONS or line.get("kind") != "Policy":
            raise ValueError(f"unrecognized object: {line.get('apiVersion')}, {line.get('kind')}")
        spec: Policy = line.get("spec") or {}
        return spec
    # Policy without apiVersion, the oldest format. No subject means all authenticated users; no namespace
    # means all namespaces.
    policy = {**line, "apiGroup": "*", "namespace": line.get("namespace") or "*"}
    if not policy.get("user") and not policy.get("group"):
        policy["group"] = "system:authenticated"
    elif policy.get("user") == "*":
        policy |= {"user": "", "group": "system:authenticated"}
    if not policy.get("resource"):
        policy |= {"resource": "*", "nonResourcePath": "*" if "namespace" not in line else ""}
    return policy


def _is_for(policy: Policy, user: User) -> bool:
    name, group = policy.get("user", ""), policy.get("group", "")
    if not name and not group:
        return False
    return name in ("", "*", user.name) and (group in ("", "*") or group in user.groups)


def _is_path(allowed: str, path: str) -> bool:
    return bool(allowed) and (
        allowed == path or (allowed.endswith("*") and path.startswith(allowed.rstrip("*")))
    )
