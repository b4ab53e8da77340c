"""Table of manifests that update objects of an old state."""

from __future__ import annotations

from tests.offline.cases import Expected, case
from tests.offline.manifests import DEPLOYMENT, POLICY, WIDGETS

UPDATES = [
    case("no change", DEPLOYMENT),
    case(
        "immutable field",
        DEPLOYMENT.replace("app: web}", "app: other}"),
        Expected(7, "error", "FieldValueInvalid", "spec.selector", "field is immutable"),
    ),
    case(
        "transition rule of a CRD",
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 2}}",
        Expected(1, "error", "FieldValueInvalid", "spec", "widgets never shrink"),
    ),
    case("new object", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: new}, spec: {size: 2}}"),
    case(
        "unknown field in an update",
        DEPLOYMENT.replace("  selector", "  colour: red\n  selector"),
        Expected(7, "error", "InternalError", "spec.colour", ".spec.colour: field not declared in schema"),
    ),
    case(
        "immutable ConfigMap",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: c}}",
        Expected(1, "error", "FieldValueForbidden", "data", "field is immutable when `immutable` is set"),
    ),
    case(
        "policy for updates of namespaces",
        "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {a: b}}}",
        Expected(1, "error", "Invalid", "", "every object needs a team"),
        policies=POLICY,
    ),
]
OLD = f"""
{WIDGETS}
---
{DEPLOYMENT}
---
{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: a}}, spec: {{size: 3}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: fixed}}, immutable: true, data: {{a: b}}}}
---
{{apiVersion: v1, kind: Namespace, metadata: {{name: shop}}}}
"""
