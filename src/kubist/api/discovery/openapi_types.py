"""Type schemas for OpenAPI v2 and v3: built-in types from the catalog, custom types from CRDs."""

from __future__ import annotations

from typing import Any

from kubist.api.discovery import descriptions
from kubist.api.discovery.openapi_paths import META, custom_name
from kubist.api.resources.resource import Resource
from kubist.model.meta.object import Object
from kubist.model.schema import catalog, openapi

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_OLD_LEAVES = {
    QUANTITY: {"type": "string"},
    INT_OR_STRING: {"type": "string", "format": "int-or-string"},
}
"""Types that v3 describes as a union of two types, which v2 cannot express."""
_DEFS = "#/definitions/"
_GVK = "x-kubernetes-group-version-kind"
_EVERYWHERE = (META + "DeleteOptions", META + "WatchEvent")
"""Kinds that exist in every group."""
_APART = ("admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io")
"""Groups that documents of custom resources omit for these kinds."""
_KNOWN = {
    "": "v1",
    "admission.k8s.io": "v1 v1beta1",
    "admissionregistration.k8s.io": "v1 v1alpha1 v1beta1",
    "apiextensions.k8s.io": "v1 v1beta1",
    "apiregistration.k8s.io": "v1 v1beta1",
    "apps": "v1 v1beta1 v1beta2",
    "authentication.k8s.io": "v1 v1alpha1 v1beta1",
    "authorization.k8s.io": "v1 v1beta1",
    "autoscaling": "v1 v2",
    "batch": "v1 v1beta1",
    "certificates.k8s.io": "v1 v1alpha1 v1beta1",
    "coordination.k8s.io": "v1 v1alpha2 v1beta1",
    "discovery.k8s.io": "v1 v1beta1",
    "events.k8s.io": "v1 v1beta1",
    "extensions": "v1beta1",
    "flowcontrol.apiserver.k8s.io": "v1 v1beta1 v1beta2 v1beta3",
    "imagepolicy.k8s.io": "v1alpha1",
    "internal.apiserver.k8s.io": "v1alpha1",
    "networking.k8s.io": "v1 v1beta1",
    "node.k8s.io": "v1 v1alpha1 v1beta1",
    "policy": "v1 v1beta1",
    "rbac.authorization.k8s.io": "v1 v1alpha1 v1beta1",
    "resource.k8s.io": "v1 v1alpha3 v1beta1 v1beta2",
    "scheduling.k8s.io": "v1 v1alpha2 v1beta1",
    "storage.k8s.io": "v1 v1alpha1 v1beta1",
    "storagemigration.k8s.io": "v1beta1",
}
"""Groups and versions of these kinds, served or not."""
_BARE = {
    "io.k8s.api.networking.v1.IngressRule": ("http",),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": (
        "additionalItems",
        "additionalProperties",
        "example",
        "externalDocs",
        "items",
        "not",
    ),
}
"""Fields that kube-apiserver writes as a plain reference, because they have no description."""


def built_in(name: str, *, group: str | None = None, version: str = "") -> Object:
    """A built-in type in v3. For kinds of every group, only the core group and the described group are listed."""
    schema = _definition(name)
    if group is not None and name in _EVERYWHERE:
        own = sorted({("", "v1"), (group, version)})
        schema[_GVK] = _kinds(name, own)
    return schema


def beside_custom(name: str) -> Object:
    """A built-in type in the document of a custom resource."""
    schema = _definition(name)
    if name in _EVERYWHERE:
        schema[_GVK] = [kind for kind in schema[_GVK] if kind["group"] not in _APART]
    return schema


def _definition(name: str) -> Object:
    definition = descriptions.described(name, openapi.definition(catalog.by_name(name)))
    if name in _EVERYWHERE:
        known = [(group, version) for group, versions in _KNOWN.items() for version in versions.split()]
        definition[_GVK] = _kinds(name, known)
    for field, schema in definition.get("properties", {}).items():
        if field in _BARE.get(name, ()) and "allOf" in schema:
            definition["properties"][field] = schema["allOf"][0]
    return definition


def _kinds(name: str, group_versions: list[tuple[str, str]]) -> list[Object]:
    kind = name.rpartition(".")[2]
    return [{"group": group, "kind": kind, "version": version} for group, version in group_versions]


def old_built_in(name: str) -> Object:
    """A built-in type in v2."""
    if name in _OLD_LEAVES:
        return dict(_OLD_LEAVES[name])
    schema = older(_definition(name))
    assert isinstance(schema, dict)
    return schema


def older(value: Any) -> Any:
    """Converts a part of a v3 schema to v2: without defaults, and with plain references instead of `allOf` wrappers."""
    if isinstance(value, list):
        return [older(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: Object = {}
    for key, inner in value.items():
        if key == "allOf" and len(inner) == 1 and "$ref" in inner[0]:
            result["$ref"] = inner[0]["$ref"].replace(openapi.REF, _DEFS)
        elif key == "$ref" and isinstance(inner, str):
            result["$ref"] = inner.replace(openapi.REF, _DEFS)
        elif key == "properties":
            result[key] = {name: older(field) for name, field in inner.items()}
        elif key != "default":
            result[key] = older(inner)
    return result


def custom(resource: Resource, *, old: bool = False) -> dict[str, Object]:
    """Schemas of a custom resource by type name: the kind and its list. `old`: for v2."""
    assert resource.custom is not None
    version = resource.custom.version.spec
    schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    extras: Object = {}
    if fields := version.get("selectableFields"):
        extras["x-kubernetes-selectable-fields"] = [
            {"fieldPath": field["jsonPath"].removeprefix(".")} for field in fields
        ]
    ref = _DEFS if old else openapi.REF
    if old and schema.get("x-kubernetes-preserve-unknown-fields"):
        kind_schema: Object = {"type": "object"}
        if schema.get("description"):
            kind_schema["description"] = schema["description"]
    else:
        kind_schema = _older_custom(schema) if old else _embedded(schema)
        kind_schema["properties"] = {**kind_schema.get("properties", {}), **_object_fields(old=old)}
    kind = custom_name(resource.group, resource.version, resource.kind)
    item = {"$ref": ref + kind}
    listed: Object = {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_object_fields("ListMeta", old=old),
            "items": {
                "description": f"List of {resource.resource}.",
                "type": "array",
                "items": item,
            },
        },
    }
    return {
        kind: {**kind_schema, **_of_kind(resource, resource.kind), **extras},
        custom_name(resource.group, resource.version, resource.list_kind): {
            **listed,
            **_of_kind(resource, resource.list_kind),
            **extras,
        },
    }


def _object_fields(metadata: str = "ObjectMeta", *, old: bool) -> Object:
    """apiVersion, kind and metadata with the descriptions of built-in objects (or lists)."""
    texts = descriptions.of_object_fields("ServiceList" if metadata == "ListMeta" else "ConfigMap")
    reference: Object = {"$ref": (_DEFS if old else openapi.REF) + META + metadata}
    fields: Object = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": reference if old else {"allOf": [reference]},
    }
    return {
        name: {"description": texts[name], **field} if name in texts else field
        for name, field in fields.items()
    }


def _of_kind(resource: Resource, kind: str) -> Object:
    known = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [known]}


def _embedded(value: Any) -> Any:
    """A custom schema in v3. Embedded resources get apiVersion, kind and metadata; int-or-string gets an anyOf."""
    if isinstance(value, list):
        return [_embedded(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: Object = {}
    for key, inner in value.items():
        if key in ("properties", "patternProperties"):
            result[key] = {name: _embedded(field) for name, field in inner.items()}
        elif key in ("default", "enum", "example"):
            result[key] = inner
        else:
            result[key] = _embedded(inner)
    if result.get("x-kubernetes-embedded-resource"):
        result["properties"] = {**result.get("properties", {}), **_object_fields(old=False)}
        required = result.get("required") or []
        result["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    if result.get("x-kubernetes-int-or-string") and "anyOf" not in result and "allOf" not in result:
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return result


_NOT_OLD = ("default", "nullable", "oneOf", "anyOf", "allOf", "not")
_STRUCTURE = ("type", "properties", "items", "additionalProperties")


def _older_custom(schema: Object) -> Object:
    """A custom schema in v2, without keywords and structure that old clients would misread."""
    loose = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable")
    dropped = {*_NOT_OLD, *(_STRUCTURE if loose else ())}
    if schema.get("x-kubernetes-int-or-string"):
        dropped.add("type")
    result: Object = {}
    for key, inner in schema.items():
        if key in dropped:
            continue
        if key == "properties":
            result[key] = {name: _older_custom(field) for name, field in inner.items()}
        elif key in ("items", "additionalProperties") and isinstance(inner, dict):
            result[key] = _older_custom(inner)
        else:
            result[key] = inner
    return result
