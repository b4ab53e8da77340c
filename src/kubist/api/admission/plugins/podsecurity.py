"""PodSecurity: checks pods against the Pod Security Standard in the namespace's labels."""

from __future__ import annotations

import time
from collections.abc import Container
from typing import TYPE_CHECKING

from kubist.api.admission.followed import Followed
from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.admission.podsecurity.checks import (
    PREFIX,
    PRIVILEGED,
    Policy,
    Standard,
    details,
    policy_of,
    reasons,
    violations,
)
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import at
from kubist.model.meta import status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

TEMPLATES = {
    "replicationcontrollers": "spec.template",
    "podtemplates": "template",
    "replicasets.apps": "spec.template",
    "deployments.apps": "spec.template",
    "statefulsets.apps": "spec.template",
    "daemonsets.apps": "spec.template",
    "jobs.batch": "spec.template",
    "cronjobs.batch": "spec.jobTemplate.spec.template",
}
IGNORED = frozenset(("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"))
"""Subresources of pods that do not write the pod's spec."""
UNRESTRICTED = str(Standard())
ENFORCED = PREFIX + "enforce-policy"
MOST_PODS, MOST_SECONDS = 3000, 1.0
"""Maximum number of existing pods to check, and maximum seconds of the check, when a namespace becomes stricter."""


class PodSecurity(Plugin):
    def __init__(self, configuration: Object | None = None) -> None:
        settings = configuration or {}
        labels = {PREFIX + name: value for name, value in (settings.get("defaults") or {}).items() if value}
        self.defaults, errors = policy_of(labels, Policy(), follow=False)
        if errors:
            raise ValueError(f"PodSecurity: {errors[0]}")
        self._exempt: Object = settings.get("exemptions") or {}

    def start(self, registry: Registry) -> None:
        self._policies = Followed(registry, "", "namespaces", self._policy)

    def _policy(self, namespace: Object) -> tuple[Policy, list[FieldError]]:
        return policy_of(namespace["metadata"].get("labels") or {}, self.defaults)

    def handles(self, resource: str, operation: str) -> bool:
        if operation not in (CREATE, UPDATE):
            return False
        parent, _, subresource = resource.partition("/")
        if parent == "pods":
            return subresource not in IGNORED
        return not subresource and (parent == "namespaces" or parent in TEMPLATES)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        if ctx.resource.resource == "namespaces":
            self._check_namespace(ctx, new, old)
            return
        exemption = self._exemption(ctx, new)
        if exemption:
            _annotate(ctx, "exempt", exemption)
            return
        entry = self._policies.get(ctx.namespace)
        if entry is None:
            raise status.internal_error(f'failed to lookup namespace "{ctx.namespace}"')
        policy, errors = entry
        if ctx.resource.resource == "pods":
            if not errors and policy.privileged:
                ctx.audit_annotations[ENFORCED] = UNRESTRICTED
            elif old is None or _changes_images(new, old):
                _annotate_errors(ctx, errors)
                _check_pod(ctx, policy, new)
            return
        if errors or policy.warn.level != PRIVILEGED or policy.audit.level != PRIVILEGED:
            template = _template(ctx, new)
            if template is not None:
                _annotate_errors(ctx, errors)
                _audit_and_warn(ctx, policy, template)

    def _exemption(self, ctx: Context, obj: Object) -> str:
        """Reason why the request is exempt (namespace, user or runtimeClass); "" if it is not exempt."""
        if not self._exempt:
            return ""
        if ctx.namespace in (self._exempt.get("namespaces") or ()):
            return "namespace"
        if ctx.user.name in (self._exempt.get("usernames") or ()):
            return "user"
        pod = obj if ctx.resource.resource == "pods" else _template(ctx, obj)
        chosen = at(pod, "spec.runtimeClassName")
        return "runtimeClass" if chosen and chosen in (self._exempt.get("runtimeClasses") or ()) else ""

    def _check_namespace(self, ctx: Context, new: Object, old: Object | None) -> None:
        name = new["metadata"].get("name", "")
        policy, errors = self._policy(new)
        if old is None:
            if errors:
                raise status.invalid("", "Namespace", name, errors)
            return
        before, old_errors = self._policy(old)
        if errors and errors != old_errors:
            raise status.invalid("", "Namespace", name, errors)
        standard, old_standard = policy.enforce, before.enforce
        if standard == old_standard or standard.level == PRIVILEGED:
            return
        if standard.minor == old_standard.minor and not standard.stricter_than(old_standard):
            return
        if name in (self._exempt.get("namespaces") or ()):
            return
        for warning in _warnings_for_existing_pods(
            ctx, name, standard, self._exempt.get("runtimeClasses") or ()
        ):
            ctx.warn(warning)


def _template(ctx: Context, obj: Object) -> Object | None:
    """Pod template of a workload."""
    resource = ctx.resource
    name = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
    template: Object | None = at(obj, TEMPLATES[name])
    return template


def _annotate(ctx: Context, key: str, value: str) -> None:
    ctx.audit_annotations[PREFIX + key] = value


def _annotate_errors(ctx: Context, errors: list[FieldError]) -> None:
    if errors:
        texts = [str(error) for error in errors]
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        _annotate(ctx, "error", f"Failed to parse policy: {text}")


def _check_pod(ctx: Context, policy: Policy, pod: Object) -> None:
    ctx.audit_annotations[ENFORCED] = str(policy.enforce)
    problems = violations(policy.enforce, pod["metadata"], pod["spec"])
    if not problems:
        _audit_and_warn(ctx, policy, pod)
        return
    _audit(ctx, policy, pod)
    raise forbidden(ctx, pod, f'violates PodSecurity "{policy.enforce}": {details(problems)}')


def _audit(ctx: Context, policy: Policy, pod: Object) -> None:
    problems = violations(policy.audit, pod.get("metadata") or {}, pod.get("spec") or {})
    if problems:
        text = f'would violate PodSecurity "{policy.audit}": {details(problems)}'
        _annotate(ctx, "audit-violations", text)


def _audit_and_warn(ctx: Context, policy: Policy, pod: Object) -> None:
    """Records violations of a pod or template in the audit event and as warnings."""
    _audit(ctx, policy, pod)
    problems = violations(policy.warn, pod.get("metadata") or {}, pod.get("spec") or {})
    if problems:
        ctx.warn(f'would violate PodSecurity "{policy.warn}": {details(problems)}')


def _changes_images(new: Object, old: Object) -> bool:
    """Whether an update adds or changes containers or images."""
    for field in ("containers", "initContainers"):
        images = [[c.get("image") for c in pod["spec"].get(field) or ()] for pod in (new, old)]
        if images[0] != images[1]:
            return True
    old_images = {c.get("name"): c.get("image") for c in old["spec"].get("ephemeralContainers") or ()}
    added = new["spec"].get("ephemeralContainers") or ()
    return any(c.get("name") not in old_images or old_images[c["name"]] != c.get("image") for c in added)


def _warnings_for_existing_pods(
    ctx: Context, namespace: str, standard: Standard, exempt: Container[str]
) -> list[str]:
    """Warnings about existing pods that violate a new standard, grouped by violation."""
    there = ctx.objects.list("pods", namespace)
    pods = _distinct_owners_first([pod for pod in there if pod["spec"].get("runtimeClassName") not in exempt])
    deadline = time.monotonic() + MOST_SECONDS
    names_by_reason: dict[str, list[str]] = {}
    checked = 0
    for pod in pods[:MOST_PODS]:
        wrong = violations(standard, pod["metadata"], pod["spec"])
        if wrong:
            names_by_reason.setdefault(reasons(wrong), []).append(pod["metadata"]["name"])
        checked += 1
        if time.monotonic() > deadline:
            break
    warnings = []
    if checked < len(pods):
        part = f"the first {checked} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {part}")
    if names_by_reason:
        what = f'violate the new PodSecurity enforce level "{standard}"'
        warnings.append(f'existing pods in namespace "{namespace}" {what}')
    return warnings + sorted(f"{_shown_names(names)}: {wrong}" for wrong, names in names_by_reason.items())


def _shown_names(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other pod{'' if others == 1 else 's'})"


def _distinct_owners_first(pods: list[Object]) -> list[Object]:
    """Pods, starting with one pod of each controller, because the pods of a controller are alike."""
    seen: set[str] = set()
    first: list[Object] = []
    rest: list[Object] = []
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        owner = next((o.get("uid", "") for o in owners if o.get("controller")), None)
        (rest if owner in seen else first).append(pod)
        if owner is not None:
            seen.add(owner)
    return first + rest
