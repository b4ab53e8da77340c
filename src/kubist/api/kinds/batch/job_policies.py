"""Validation of a JobSpec's podFailurePolicy, successPolicy and podReplacementPolicy."""

from __future__ import annotations

import itertools

from kubist.api.kinds.batch import indexes
from kubist.api.kinds.shared.values import nonnegative
from kubist.api.resources.strategy import Errors
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.fields import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from kubist.model.meta.labels import validate_label_name
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

MAX_RULES = 20
MAX_EXIT_CODES = 255
MAX_POD_CONDITIONS = 20
MAX_SUCCEEDED_INDEXES = 64 * 1024
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
EXIT_CODE_OPERATORS = ("In", "NotIn")
CONDITION_STATUSES = ("False", "True", "Unknown")


def validate_pod_failure_policy(spec: Object, path: str) -> Errors:
    rules = spec["podFailurePolicy"].get("rules") or []
    errors = []
    if len(rules) > MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), MAX_RULES))
    pod = spec["template"]["spec"]
    containers = {
        container.get("name", "")
        for field in ("containers", "initContainers")
        for container in pod.get(field) or ()
    }
    for index, rule in enumerate(rules):
        errors += _validate_rule(spec, rule, f"{path}.rules[{index}]", containers)
    return errors


def _one_of(value: str, path: str, valid: tuple[str, ...]) -> Errors:
    if not value:
        return [required(path, f"valid values: [{' '.join(map(quoted, valid))}]")]
    return [] if value in valid else [not_supported(path, value, valid)]


def _validate_rule(spec: Object, rule: Object, path: str, containers: set[str]) -> Errors:
    action = rule.get("action", "")
    errors = _one_of(action, f"{path}.action", ACTIONS)
    if action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    exit_codes = rule.get("onExitCodes")
    conditions = rule.get("onPodConditions") or []
    if exit_codes is not None:
        errors += _validate_exit_codes(exit_codes, f"{path}.onExitCodes", containers)
    if conditions:
        errors += _validate_pod_conditions(conditions, f"{path}.onPodConditions")
    if exit_codes is not None and conditions:
        errors.append(omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if exit_codes is None and not conditions:
        errors.append(omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def omitted(path: str, detail: str) -> FieldError:
    """Invalid-value error that does not show the value."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {detail}")


def _validate_exit_codes(requirement: Object, path: str, containers: set[str]) -> Errors:
    operator = requirement.get("operator", "")
    errors = _one_of(operator, f"{path}.operator", EXIT_CODE_OPERATORS)
    container = requirement.get("containerName")
    if container is not None and container not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, why))
    values = requirement.get("values") or []
    if not values:
        errors.append(invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > MAX_EXIT_CODES:
        errors.append(too_many(f"{path}.values", len(values), MAX_EXIT_CODES))
    seen = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if any(earlier > later for earlier, later in itertools.pairwise(values)):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def _validate_pod_conditions(patterns: list[Object], path: str) -> Errors:
    errors = []
    if len(patterns) > MAX_POD_CONDITIONS:
        errors.append(too_many(path, len(patterns), MAX_POD_CONDITIONS))
    for index, pattern in enumerate(patterns):
        errors += validate_label_name(pattern.get("type", ""), f"{path}[{index}].type")
        errors += _one_of(pattern.get("status", ""), f"{path}[{index}].status", CONDITION_STATUSES)
    return errors


def validate_success_policy(spec: Object, path: str) -> Errors:
    policy = spec["successPolicy"]
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        value = internal_form("batch.SuccessPolicy", policy)
        return [invalid(path, value, "requires indexed completion mode")]
    errors = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", why))
    if len(rules) > MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_success_rule(rule, spec.get("completions", 0), f"{path}.rules[{index}]")
    return errors


def _validate_success_rule(rule: Object, completions: int, path: str) -> Errors:
    errors = []
    count = rule.get("succeededCount")
    succeeded = rule.get("succeededIndexes")
    if count is None and succeeded is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if succeeded is not None:
        if len(succeeded.encode()) > MAX_SUCCEEDED_INDEXES:
            errors.append(too_long(f"{path}.succeededIndexes", MAX_SUCCEEDED_INDEXES))
        try:
            total = indexes.count(succeeded, completions)
        except indexes.IndexesError as error:
            why = f"error parsing succeededIndexes: {error}"
            errors.append(invalid(f"{path}.succeededIndexes", succeeded, why))
    if count is not None:
        errors += nonnegative(count, f"{path}.succeededCount")
        if count > completions:
            why = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(f"{path}.succeededCount", count, why))
        if succeeded is not None and count > total:
            why = (
                f"must be less than or equal to {total} (the number of indexes in the specified "
                "succeededIndexes field)"
            )
            errors.append(invalid(f"{path}.succeededCount", count, why))
    return errors


def validate_pod_replacement_policy(spec: Object, path: str) -> Errors:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    valid = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    return [] if policy in valid else [not_supported(path, policy, valid)]
