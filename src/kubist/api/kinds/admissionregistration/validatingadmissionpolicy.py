"""ValidatingAdmissionPolicy: expressions that a request must satisfy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from kubist.api.crd.jsonpath import JsonPath, PathError
from kubist.api.kinds.admissionregistration import expressions
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.kinds.admissionregistration.matching import one_of
from kubist.api.kinds.admissionregistration.policies import (
    PolicyStrategy,
    validate_conditions,
    validate_matching,
    validate_variables,
)
from kubist.api.kinds.shared.update import StatusOnly
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Subresource
from kubist.model.meta import conditions, fields, names
from kubist.model.meta.object import Object

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MAX_ANNOTATIONS = 20
_MAX_VALUE_EXPRESSION = 5 * 1024
_first_field = re.compile(r"^[A-Za-z][^ .,\[\]$@{}]*").sub
_NEITHER = "validations or auditAnnotations must contain at least one item"


class ValidatingAdmissionPolicyStatus(StatusOnly):
    creates = True
    metadata_rules = ()

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        status = new.get("status") or {}
        errors: Errors = []
        warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
        for index, warning in enumerate(warnings):
            path = f"status.typeChecking.expressionWarnings[{index}]"
            if not warning.get("warning"):
                errors.append(fields.required(f"{path}.warning"))
            reference = warning.get("fieldRef", "").strip()
            if not reference:
                errors.append(fields.required(f"{path}.fieldRef"))
                continue
            try:
                JsonPath(_first_field("", reference))
            except PathError as error:
                why = f"invalid JSONPath: {error}"
                errors.append(fields.invalid(f"{path}.fieldRef", reference, why))
        return errors + conditions.validate_conditions(status.get("conditions"), "status.conditions")


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    reset_fields = ("status",)
    first_status: ClassVar = {}
    subresources: Mapping[str, Subresource] = {"status": ValidatingAdmissionPolicyStatus()}

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new, old)


def _validate(policy: Object, old: Object | None) -> Errors:
    spec = policy["spec"]
    params = spec.get("paramKind") is not None
    errors = validate_matching(spec) + validate_conditions(spec, old and old["spec"])
    variable_errors, environment = validate_variables(
        spec, Environment(params=params, composed=bool(spec.get("variables")))
    )
    errors += variable_errors
    validations = spec.get("validations") or []
    annotations = spec.get("auditAnnotations") or []
    if not validations and not annotations:
        errors += [fields.required(f"spec.{n}", _NEITHER) for n in ("validations", "auditAnnotations")]
    message_environment = environment.without_authorizer()
    for index, validation in enumerate(validations):
        errors += _validate_validation(
            validation, f"spec.validations[{index}]", environment, message_environment
        )
    if len(annotations) > _MAX_ANNOTATIONS:
        why = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        errors.append(fields.invalid("spec.auditAnnotations", annotations, why))
    keys = set()
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        errors += _validate_annotation(policy["metadata"], annotation, path, environment)
        key = annotation.get("key", "")
        if key in keys:
            errors.append(fields.duplicate(f"{path}.key", key))
        keys.add(key)
    return errors


def _validate_validation(
    validation: Object, path: str, environment: Environment, message_environment: Environment
) -> Errors:
    """`message_environment` is the environment of messageExpression, which has no authorizer."""
    errors = []
    expression = validation.get("expression", "")
    if not expression.strip():
        errors.append(fields.required(f"{path}.expression", "expression is not specified"))
    else:
        errors += expressions.validate(expression, f"{path}.expression", environment, "bool")
    message_expression = validation.get("messageExpression", "")
    if message_expression and not message_expression.strip():
        why = "must be non-empty if specified"
        errors.append(fields.invalid(f"{path}.messageExpression", message_expression, why))
    elif message_expression:
        errors += expressions.validate(
            message_expression, f"{path}.messageExpression", message_environment, "string"
        )
    message = validation.get("message", "")
    if message and not message.strip():
        errors.append(fields.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(fields.invalid(f"{path}.message", message, "must not contain line breaks"))
    return errors + one_of(validation.get("reason"), f"{path}.reason", _REASONS)


def _validate_annotation(meta: Object, annotation: Object, path: str, environment: Environment) -> Errors:
    key = annotation.get("key", "")
    if meta.get("name"):
        full = f"{meta['name']}/{key}"
        errors = [fields.invalid(f"{path}.key", full, message) for message in names.qualified_name(full)]
    else:
        errors = [fields.invalid(f"{path}.key", key, "requires metadata.name be non-empty")]
    text = annotation.get("valueExpression", "")
    expression = text.strip()
    if not expression:
        errors.append(fields.required(f"{path}.valueExpression", "valueExpression is not specified"))
    elif len(expression.encode()) > _MAX_VALUE_EXPRESSION:
        why = f"must not exceed {_MAX_VALUE_EXPRESSION} bytes in length"
        errors.append(fields.required(f"{path}.valueExpression", why))
    else:
        errors += expressions.validate(
            expression, f"{path}.valueExpression", environment, "string or null", value=text
        )
    return errors


strategy = ValidatingAdmissionPolicyStrategy()
