"""Validation of container restart policies, restart rules and resize policies."""

from __future__ import annotations

from kubist.model.meta.fields import FieldError, duplicate, invalid, not_supported, required, too_many
from kubist.model.meta.object import Object

Errors = list[FieldError]

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_RESIZE_RESOURCES = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


def validate_restart_policy(container: Object, path: str, *, init: bool = False) -> Errors:
    """Validates policy and rules. The rules of an init container are validated only if it has a policy."""
    errors: Errors = []
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        if rules:
            why = "must specify restartPolicy when restart rules are used"
            errors.append(required(f"{path}.restartPolicy", why))
        if init:
            return errors
    elif policy not in _POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _POLICIES))
    if len(rules) > _MAX_RULES:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _rule(rule, f"{path}.restartPolicyRules[{index}]")
    return errors


def _rule(rule: Object, path: str) -> Errors:
    errors: Errors = []
    action = rule.get("action", "")
    if action not in _ACTIONS:
        errors.append(not_supported(f"{path}.action", action, _ACTIONS))
    codes = rule.get("exitCodes")
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if operator not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", operator, ("In", "NotIn")))
    if len(values) > _MAX_EXIT_CODES:
        errors.append(too_many(f"{path}.exitCodes.values", len(values), _MAX_EXIT_CODES))
    return errors


def validate_resize_policy(policies: list[Object] | None, pod_policy: str, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, policy in enumerate(policies or ()):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        for value, supported in ((resource, _RESIZE_RESOURCES), (restart, _RESIZE_POLICIES)):
            if value not in supported:
                errors.append(not_supported(path, value, supported) if value else required(path))
        if pod_policy == "Never" and restart != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, why))
    return errors


def should_restart(container: Object, spec: Object, exit_code: int) -> bool:
    """Whether a container that exited with `exit_code` is restarted."""
    policy = container.get("restartPolicy")
    if policy is not None and any(
        _matches(rule, exit_code) for rule in container.get("restartPolicyRules") or ()
    ):
        return True
    if policy not in _POLICIES:
        policy = spec.get("restartPolicy")
    return policy not in ("Never", "OnFailure") or (policy == "OnFailure" and exit_code != 0)


def _matches(rule: Object, exit_code: int) -> bool:
    codes = rule.get("exitCodes")
    if codes is None or rule.get("action") not in _ACTIONS:
        return False
    listed = exit_code in (codes.get("values") or ())
    return listed if codes.get("operator") == "In" else not listed


def may_restart_all(spec: Object) -> bool:
    """Whether a restart rule restarts all containers of the pod."""
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
        for rule in container.get("restartPolicyRules") or ()
    )
