"""Matching of requests by webhooks and policies: rules, selectors, and equivalent resources."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector

EXEMPT = frozenset(
    (
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
)
"""Kinds that configure admission. Webhooks and policies skip them, so that a bad configuration can always be
removed."""


def exempt(kind: str, group: str) -> bool:
    return group == "admissionregistration.k8s.io" and kind in EXEMPT


class Criteria:
    """Compiled rules and selectors of a webhook, or match constraints of a policy."""

    def __init__(self, spec: Object, rules: str = "rules") -> None:
        self.rules: list[Object] = spec.get(rules) or []
        self.excluded: list[Object] = spec.get("excludeResourceRules") or []
        self.all = rules != "rules" and not self.rules
        """Constraints without rules match every request; a webhook without rules matches none."""
        self.equivalent = spec.get("matchPolicy", "Equivalent") == "Equivalent"
        self.namespaces = label_selector(spec.get("namespaceSelector") or {})
        self.objects = label_selector(spec.get("objectSelector") or {})

    def match(self, request: AdmissionRequest) -> Target | None:
        """Target with which the request matches, or None. Raises 404 if the match depends on a namespace that does not
        exist."""
        if not self.objects.empty and not self._selects(request):
            return None
        missing = False
        if not self.namespaces.empty and (request.namespace or request.of_namespaces):
            labels = request.namespace_labels()
            missing = labels is None
            if labels is not None and not self.namespaces.matches(labels):
                return None
        if self.excluded and self._find(self.excluded, request) is not None:
            return None
        target = request.target if self.all else self._find(self.rules, request)
        if target is not None and missing:
            raise status.not_found("", "namespaces", request.namespace)
        return target

    def _selects(self, request: AdmissionRequest) -> bool:
        states = (obj for obj in (request.new, request.old) if obj is not None)
        return any(self.objects.matches((obj.get("metadata") or {}).get("labels") or {}) for obj in states)

    def _find(self, rules: list[Object], request: AdmissionRequest) -> Target | None:
        for rule in rules:
            if _applies(rule, request, request.target):
                return request.target
        if self.equivalent:
            others = request.equivalents()
            for rule in rules:
                for other in others:
                    if _applies(rule, request, other):
                        return other
        return None


def _applies(rule: Object, request: AdmissionRequest, target: Target) -> bool:
    resource = target.resource
    if not _among(request.operation, rule.get("operations")):
        return False
    if not _among(resource.group, rule.get("apiGroups")) or not _among(
        resource.version, rule.get("apiVersions")
    ):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") != resource.namespaced:
        return False
    if rule.get("resourceNames") and request.name not in rule["resourceNames"]:
        return False
    for pattern in rule.get("resources") or ():
        name, _, sub = pattern.partition("/")
        if name in ("*", resource.resource) and sub in ("*", request.subresource):
            return True
    return False


def _among(value: str, allowed: Iterable[str] | None) -> bool:
    return any(item in ("*", value) for item in allowed or ())
