"""Audit policy: the audit level of each request. The first matching rule decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.model.meta.object import Object

LEVELS = ("None", "Metadata", "Request", "RequestResponse")
STAGES = frozenset(("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"))


@dataclass(slots=True, frozen=True)
class Verdict:
    """Audit level and omitted parts for one request."""

    level: int
    """Index in LEVELS."""
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


class AuditPolicy:
    """Rules of an audit policy file."""

    def __init__(self, policy: Object) -> None:
        omitted = policy.get("omitStages") or []
        managed = bool(policy.get("omitManagedFields"))
        self._default = Verdict(0, frozenset(omitted), managed)
        self._rules: list[tuple[Object, Verdict]] = []
        for rule in policy.get("rules") or []:
            if rule.get("level") not in LEVELS:
                raise ValueError(f"an audit rule's level is {rule.get('level')!r}, not one of {LEVELS}")
            stages = frozenset([*omitted, *(rule.get("omitStages") or [])])
            if stages - STAGES:
                raise ValueError(f"unknown audit stages: {', '.join(sorted(stages - STAGES))}")
            own = rule.get("omitManagedFields")
            verdict = Verdict(LEVELS.index(rule["level"]), stages, managed if own is None else bool(own))
            self._rules.append((rule, verdict))

    @classmethod
    def read(cls, path: str) -> AuditPolicy:
        # Saves start-up time: only --audit-policy-file needs it.
        import yaml

        policy = yaml.safe_load(Path(path).read_bytes()) or {}
        if policy.get("kind") != "Policy" or not str(policy.get("apiVersion", "")).startswith(
            "audit.k8s.io/"
        ):
            raise ValueError(f"{path} is not an audit.k8s.io Policy")
        if not policy.get("rules"):
            raise ValueError(f"{path} has no rules")
        return cls(policy)

    def verdict(self, attributes: AuthorizationQuery) -> Verdict:
        for rule, verdict in self._rules:
            if _matches(rule, attributes):
                return verdict
        return self._default


def _matches(rule: Object, attributes: AuthorizationQuery) -> bool:
    if rule.get("users") and attributes.user.name not in rule["users"]:
        return False
    if rule.get("userGroups") and not set(rule["userGroups"]).intersection(attributes.user.groups):
        return False
    if rule.get("verbs") and attributes.verb not in rule["verbs"]:
        return False
    if rule.get("namespaces") or rule.get("resources"):
        return attributes.is_resource and _matches_resource(rule, attributes)
    if rule.get("nonResourceURLs"):
        return not attributes.is_resource and any(
            url == attributes.path or (url.endswith("*") and attributes.path.startswith(url.rstrip("*")))
            for url in rule["nonResourceURLs"]
        )
    return True


def _matches_resource(rule: Object, attributes: AuthorizationQuery) -> bool:
    if rule.get("namespaces") and attributes.namespace not in rule["namespaces"]:
        return False
    if not rule.get("resources"):
        return True
    patterns = {"*", f"{attributes.resource}/*"}
    if attributes.subresource:
        patterns |= {f"{attributes.resource}/{attributes.subresource}", f"*/{attributes.subresource}"}
    else:
        patterns.add(attributes.resource)
    return any(
        one.get("group", "") in ("*", attributes.group)
        and (
            not one.get("resources")
            or (
                bool(patterns.intersection(one["resources"]))
                and (not one.get("resourceNames") or attributes.name in one["resourceNames"])
            )
        )
        for one in rule["resources"]
    )
