"""Policies and bindings: validation, and the right to read their parameters."""

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from kubist.api.resources.allocations import Allocations
from kubist.api.resources.context import User
from kubist.model.meta.status import APIError

V1 = "admissionregistration.k8s.io/v1"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
Causes = list[tuple[str, str]]
PATCH = '[JSONPatch{op: "remove", path: "/spec/nodeName"}]'


def policy(**spec: Any) -> dict[str, Any]:
    fine = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
    return {"spec": {**fine, **spec}}


def mutation(**spec: Any) -> dict[str, Any]:
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}
    fine = {
        "matchConstraints": {"resourceRules": [RULE]},
        "mutations": [patch],
        "reinvocationPolicy": "Never",
    }
    return {"spec": {**fine, **spec}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (policy(), []),
        (policy(matchConstraints=None), [("spec.matchConstraints", "Required")]),
        (policy(validations=[]), [("spec.validations", "Required"), ("spec.auditAnnotations", "Required")]),
        (policy(validations=[{"expression": " "}]), [("spec.validations[0].expression", "Required")]),
        (
            policy(validations=[{"expression": "true", "message": "a\nb"}]),
            [("spec.validations[0].message", "Invalid")],
        ),
        (
            policy(validations=[{"expression": "true", "reason": "Unauthorized"}]),
            [("spec.validations[0].reason", "NotSupported")],
        ),
        (policy(variables=[{"name": "for", "expression": "1"}]), [("spec.variables[0].name", "Invalid")]),
        (
            policy(auditAnnotations=[{"key": "a b", "valueExpression": "'x'"}]),
            [("spec.auditAnnotations[0].key", "Invalid")],
        ),
        (policy(paramKind={"apiVersion": "a/b/c", "kind": "X"}), [("spec.paramKind.apiVersion", "Invalid")]),
        (
            policy(matchConditions=[{"name": "a", "expression": "true"}] * 2),
            [("spec.matchConditions[1].name", "Duplicate")],
        ),
    ],
)
def test_invalid_validating_policy_is_rejected(kind_of: Any, given: dict[str, Any], expected: Causes) -> None:
    assert kind_of(V1, "ValidatingAdmissionPolicy").create_errors(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (mutation(), []),
        (
            mutation(mutations=[{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]),
            [("spec.mutations[0].jsonPatch.expression", "Invalid")],
        ),
        (mutation(mutations=[]), [("spec.mutations", "Required")]),
        (mutation(mutations=[{"patchType": "Merge"}]), [("spec.mutations[0].patchType", "NotSupported")]),
        (
            mutation(mutations=[{"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}}]),
            [
                ("spec.mutations[0].applyConfiguration", "Required"),
                ("spec.mutations[0].jsonPatch", "Invalid"),
            ],
        ),
        (
            mutation(matchConstraints={"resourceRules": [{**RULE, "operations": ["DELETE"]}]}),
            [("spec.matchConstraints.resourceRules.operations", "NotSupported")],
        ),
        (mutation(reinvocationPolicy=""), [("spec.reinvocationPolicy", "Required")]),
    ],
)
def test_invalid_mutating_policy_is_rejected(kind_of: Any, given: dict[str, Any], expected: Causes) -> None:
    assert kind_of(V1, "MutatingAdmissionPolicy").create_errors(given) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{policyName: p, validationActions: [Deny]}", []),
        ("{policyName: p}", [("spec.validationActions", "Required")]),
        ("{policyName: p, validationActions: [Deny, Warn]}", [("spec.validationActions", "Invalid")]),
        (
            "{policyName: p, validationActions: [Deny], paramRef: {}}",
            [("spec.paramRef", "Required"), ("spec.paramRef.parameterNotFoundAction", "Required")],
        ),
        (
            "{policyName: p, validationActions: [Deny],"
            " paramRef: {name: n, selector: {}, parameterNotFoundAction: Deny}}",
            [("spec.paramRef.name", "Forbidden"), ("spec.paramRef.selector", "Forbidden")],
        ),
    ],
)
def test_invalid_policy_binding_is_rejected(kind_of: Any, spec: str, expected: Causes) -> None:
    assert kind_of(V1, "ValidatingAdmissionPolicyBinding").create_errors(f"spec: {spec}") == expected


def test_policy_status_conditions_are_validated(kind_of: Any) -> None:
    policies = kind_of(V1, "ValidatingAdmissionPolicy")
    old = policies.stored(policy())

    def write(obj: Any) -> None:
        obj["status"] = {
            "conditions": [{"type": "A", "status": "Maybe"}],
            "typeChecking": {"expressionWarnings": [{"fieldRef": "spec[", "warning": "w"}]},
        }

    assert policies.change_errors(old, write, "status") == [
        ("status.typeChecking.expressionWarnings[0].fieldRef", "Invalid"),
        ("status.conditions[0].status", "NotSupported"),
        ("status.conditions[0].lastTransitionTime", "Required"),
        ("status.conditions[0].reason", "Required"),
    ]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("spec.validations[0].expression", []),
        ("a['b'].c[1:2]", []),
        ("10.0.0.0/8", ["Invalid"]),
        ("/spec", ["Invalid"]),
        (" ", ["Required"]),
    ],
)
def test_type_warning_field_ref_must_be_a_path(kind_of: Any, reference: str, expected: list[str]) -> None:
    policies = kind_of(V1, "ValidatingAdmissionPolicy")

    def write(obj: Any) -> None:
        warning = {"fieldRef": reference, "warning": "w"}
        obj["status"] = {"typeChecking": {"expressionWarnings": [warning]}}

    found = policies.change_errors(policies.stored(policy()), write, "status")
    assert [reason for _, reason in found] == expected


class NoObjects:
    def find_kind(self, group: str, version: str, kind: str) -> None:
        return None

    def get(self, *args: Any, **options: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("groups", "allowed", "refused"),
    [((), False, True), ((), True, False), (("system:masters",), False, False)],
)
def test_policy_author_must_be_allowed_to_read_parameters(
    kind_of: Any, groups: tuple[str, ...], allowed: bool, refused: bool
) -> None:
    policies = kind_of(V1, "ValidatingAdmissionPolicy")
    asked = []

    async def authorize(verb: str, **attributes: Any) -> tuple[bool, str]:
        asked.append((verb, attributes["group"], attributes["resource"]))
        return allowed, ""

    context = policies.context
    context.user, context.objects, context.authorize = User("jo", groups=groups), NoObjects(), authorize
    obj = policies.create(policy(paramKind={"apiVersion": "example.com/v1", "kind": "Limit"}))
    told = pytest.raises(APIError, match=r"spec\.paramKind: Forbidden") if refused else nullcontext()
    with told:
        asyncio.run(policies.strategy.before_write(context, obj, None, Allocations()))
    assert asked == ([] if groups else [("get", "example.com", "*")])
