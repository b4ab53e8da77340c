"""Validation of CRDs: causes as (field, reason). Fields of a CRD with one version are reported at the top of
the spec."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.api.crd.schemas import formats_warnings
from kubist.api.crd.validate import validate_definition
from kubist.api.kinds.apiextensions.customresourcedefinition import strategy
from kubist.api.resources.resource import builtin
from kubist.model.meta.object import Object
from kubist.model.schema.strict import decode_value
from tests.crd.defining import definition, version

INVALID, REQUIRED, FORBIDDEN = "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"
SCHEMA = "spec.validation.openAPIV3Schema"
RESOURCE = next(resource for resource in builtin() if resource.kind == "CustomResourceDefinition")


def decoded(crd: Object) -> Object:
    obj: Object = decode_value(RESOURCE.schema, crd).object
    strategy.default(obj)
    if not obj["status"].get("conditions"):
        strategy.prepare(None, obj, None)  # type: ignore[arg-type]
    return obj


def causes(crd: Object, old: Object | None = None) -> list[tuple[str, str]]:
    before = decoded(old) if old is not None else None
    return [(error.field, error.reason) for error in validate_definition(decoded(crd), before)]


def of(**properties: Any) -> Object:
    return definition("Thing", "x.example.com", version(schema={"type": "object", "properties": properties}))


def test_plain_crd_is_valid() -> None:
    assert causes(of(spec={"type": "object", "properties": {"a": {"type": "string"}}})) == []


SCHEMAS: list[tuple[Object, list[tuple[str, str]]]] = [
    ({}, [("type", REQUIRED)]),
    ({"type": "array"}, [("items", REQUIRED)]),
    ({"type": "nothing"}, [("type", "FieldValueNotSupported")]),
    ({"type": "object", "uniqueItems": True}, [("uniqueItems", FORBIDDEN)]),
    ({"type": "string", "anyOf": [{"type": "string"}]}, [("anyOf[0].type", FORBIDDEN)]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}, []),
    ({"type": "string", "pattern": "("}, [("pattern", INVALID)]),
    ({"type": "string", "default": 1}, [("default", "FieldValueTypeInvalid")]),
    (
        {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}},
        [("default", INVALID)],
    ),
    (
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "properties": {"b": {"type": "string"}},
        },
        [("additionalProperties", FORBIDDEN)],
    ),
    ({"type": "object", "x-kubernetes-list-type": "set"}, [("type", INVALID)]),
    (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
        [("x-kubernetes-list-map-keys", REQUIRED)],
    ),
    (
        {
            "type": "array",
            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        [("items.properties[k].default", REQUIRED)],
    ),
    ({"type": "object", "x-kubernetes-embedded-resource": True}, [("properties", REQUIRED)]),
    (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
        [("x-kubernetes-preserve-unknown-fields", INVALID)],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]},
        [("x-kubernetes-validations[0].rule", INVALID)],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self"}]},
        [("x-kubernetes-validations[0].rule", INVALID)],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": ""}]},
        [("x-kubernetes-validations[0].rule", REQUIRED)],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self == ''", "messageExpression": "1"}]},
        [("x-kubernetes-validations[0].messageExpression", INVALID)],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self == ''", "optionalOldSelf": True}]},
        [("x-kubernetes-validations[0].optionalOldSelf", INVALID)],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self == ''", "reason": "Because"}]},
        [("x-kubernetes-validations[0].reason", "FieldValueNotSupported")],
    ),
    (
        {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "string",
                "maxLength": 5,
                "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
            },
        },
        [("items.x-kubernetes-validations[0].rule", INVALID)],
    ),
    (
        {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, self.all(c, a + b != c)))"}],
        },
        [
            ("x-kubernetes-validations[0].rule", FORBIDDEN),
            ("x-kubernetes-validations[0].rule", FORBIDDEN),
            ("", FORBIDDEN),
        ],
    ),
]


@pytest.mark.parametrize(("props", "wanted"), SCHEMAS)
def test_schemas(props: Object, wanted: list[tuple[str, str]]) -> None:
    where = f"{SCHEMA}.properties[a]"
    expected = [(f"{where}.{field}" if field else SCHEMA, reason) for field, reason in wanted]
    assert causes(of(a=props)) == expected


def changed(**spec: Any) -> Object:
    crd = of()
    crd["spec"] |= spec
    return crd


SPECS: list[tuple[Object, list[tuple[str, str]]]] = [
    (changed(group="nodot"), [("spec.group", INVALID)]),
    (changed(scope="World"), [("spec.scope", "FieldValueNotSupported")]),
    (changed(versions=[]), [("spec.versions", INVALID), ("status.storedVersions", INVALID)]),
    (
        changed(versions=[version(), version()]),
        [("spec.versions", INVALID), ("spec.versions", INVALID), ("status.storedVersions", INVALID)],
    ),
    (changed(preserveUnknownFields=True), [("spec.preserveUnknownFields", INVALID)]),
    (
        changed(conversion={"strategy": "Webhook"}),
        [
            ("spec.conversion.webhookClientConfig", REQUIRED),
            ("spec.conversion.conversionReviewVersions", REQUIRED),
        ],
    ),
    (
        changed(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        [("spec.conversion.conversionReviewVersions", FORBIDDEN)],
    ),
    (
        changed(versions=[version(additionalPrinterColumns=[{"name": "", "type": "x", "jsonPath": "a"}])]),
        [
            ("spec.additionalPrinterColumns[0].name", REQUIRED),
            ("spec.additionalPrinterColumns[0].type", INVALID),
            ("spec.additionalPrinterColumns[0].JSONPath", INVALID),
        ],
    ),
    (
        changed(
            versions=[version(subresources={"scale": {"specReplicasPath": ".a", "statusReplicasPath": ""}})]
        ),
        [
            ("spec.subresources.scale.specReplicasPath", INVALID),
            ("spec.subresources.scale.statusReplicasPath", REQUIRED),
        ],
    ),
    (
        changed(versions=[version(), {**version("v2"), "schema": {"openAPIV3Schema": {"type": "string"}}}]),
        [("spec.versions[1].schema.openAPIV3Schema.type", INVALID)],
    ),
    (
        changed(versions=[version(deprecationWarning="x")]),
        [("spec.versions[0].deprecationWarning", INVALID)],
    ),
]


@pytest.mark.parametrize(("crd", "wanted"), SPECS)
def test_specs(crd: Object, wanted: list[tuple[str, str]]) -> None:
    assert causes(crd) == wanted


def test_names_are_immutable_once_established() -> None:
    old = of()
    old["status"] = {
        "conditions": [{"type": "Established", "status": "True"}],
        "acceptedNames": {"plural": "things", "kind": "Thing"},
        "storedVersions": ["v1"],
    }
    new = {**of(), "status": old["status"]}
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Other"
    assert causes(new, old) == [("spec.scope", INVALID), ("spec.names.kind", INVALID)]


def test_update_tolerates_errors_of_the_old_crd() -> None:
    rule = {"rule": "self.all(a, self.all(b, self.all(c, a + b != c)))"}
    props = {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [rule]}
    old = of(a=props)
    assert (f"{SCHEMA}.properties[a].x-kubernetes-validations[0].rule", FORBIDDEN) in causes(old)
    first = [field for field, _ in causes(of(a=props), old)]
    assert first.count(f"{SCHEMA}.properties[a].x-kubernetes-validations[0].rule") == 1, (
        "only the sum is too much"
    )


def test_protected_groups_need_approval() -> None:
    crd = definition("Thing", "x.k8s.io")
    where = "metadata.annotations[api-approved.kubernetes.io]"
    assert causes(crd) == [(where, REQUIRED)]
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "sure"}
    assert causes(crd) == [(where, INVALID)]
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
    assert causes(crd) == []


def test_unknown_format_warns_once() -> None:
    old, new = of(a={"type": "string", "format": "odd"}), of(a={"type": "string", "format": "odd"})
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["b"] = {
        "type": "integer",
        "format": "date",
    }
    assert formats_warnings(decoded(old), None) == ['unrecognized format "odd"']
    assert formats_warnings(decoded(new), decoded(old)) == ['unrecognized format "date"']
