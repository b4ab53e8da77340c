"""Discovery documents (groups, versions, resources), built from the served resources. Aggregated discovery has all of
them in one document, apidiscovery.k8s.io/v2."""

from __future__ import annotations

import hashlib

import orjson

from kubist.api.aggregation.aggregation import Aggregation
from kubist.api.resources.resource import Resource, Resources, SubresourceInfo
from kubist.model.codec import negotiate, protobuf, yaml
from kubist.model.meta.api_versions import priority, storage_version_hash
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name
from kubist.model.schema.node import Field, Schema

HASHED_AS = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "v1beta1",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "v1beta1",
}
"""Kinds that kube-apiserver does not store in their preferred version, so that older releases can read them."""


def api_versions(address: str) -> Object:
    """`/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def versions_of(name: str, resources: Resources) -> list[str]:
    """Versions of a group, the preferred one first."""
    versions = resources.versions(name)
    return sorted(versions, key=priority) if is_custom(name, resources) else versions


def is_custom(name: str, resources: Resources) -> bool:
    return all(
        resource.custom
        for version in resources.versions(name)
        for resource in (resources.of(name, version) or {}).values()
    )


def group(name: str, resources: Resources) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in versions_of(name, resources)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def group_names(resources: Resources) -> list[str]:
    """Groups in the order of `/apis`: built-in groups, then custom groups sorted by the APIService name of
    their preferred version."""
    names = list(dict.fromkeys(name for name, _ in resources.group_versions() if name))
    custom = [name for name in names if is_custom(name, resources)]
    custom.sort(key=lambda name: f"{versions_of(name, resources)[0]}.{name}")
    return [name for name in names if name not in custom] + custom


def api_group_list(resources: Resources) -> Object:
    """`/apis`."""
    groups = [group(name, resources) for name in group_names(resources)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(name: str, resources: Resources) -> Object:
    """`/apis/<group>`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **group(name, resources)}


def api_resource_list(name: str, version: str, served: dict[str, Resource]) -> Object:
    """`/api/v1` and `/apis/<group>/<version>`."""
    group_version = f"{name}/{version}" if name else version
    resources: list[Object] = []
    for resource in served.values():
        resources.append(_entry(resource))
        resources += [_subresource(resource, sub) for sub in resource.subresources.values()]
    document: Object = {"kind": "APIResourceList"}
    if name:
        document["apiVersion"] = "v1"
    return {**document, "groupVersion": group_version, "resources": resources}


def add_optional_names(entry: Object, resource: Resource) -> None:
    """Add the short names and categories of a resource to its discovery entry."""
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)


def _entry(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    add_optional_names(entry, resource)
    if "get" in resource.verbs and ("create" in resource.verbs or resource.custom):
        entry["storageVersionHash"] = resource.storage_version_hash or _stored(resource)
    return entry


def _stored(resource: Resource) -> str:
    group, _, version = resource.storage_version.rpartition("/")
    return storage_version_hash(group, HASHED_AS.get((group, resource.kind), version), resource.kind)


def _subresource(resource: Resource, sub: SubresourceInfo) -> Object:
    entry: Object = {
        "name": f"{resource.resource}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if sub.version:
        entry |= {"group": sub.group, "version": sub.version} if sub.group else {"version": sub.version}
    return entry | {"kind": sub.kind, "verbs": list(sub.verbs)}


API_VERSION = "apidiscovery.k8s.io/v2"
KIND = "APIGroupDiscoveryList"
TRANSFORM = {"g": "apidiscovery.k8s.io", "v": "v2", "as": KIND}
SUFFIX = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def asked_for(accept: str) -> str | None:
    """Serializer of the first Accept clause that requests this document, or None. Other clauses are ignored."""
    for clause in negotiate.parse_accept(accept):
        parameters = dict(clause.parameters)
        if all(parameters.get(name) == value for name, value in TRANSFORM.items()):
            for serializer in negotiate.ALL:
                if clause.names(serializer) and not parameters.get("stream"):
                    return serializer
    return None


class Aggregated:
    """The document of `/api` or `/apis` and its ETag, cached until the resources change."""

    def __init__(self, resources: Resources, *, core: bool) -> None:
        self.resources = resources
        self.core = core
        self.aggregation: Aggregation | None = None
        self._generation = (-1, 0)
        self._document: Object = {}
        self._written: dict[str, bytes] = {}
        self.etag = ""

    def body(self, serializer: str) -> bytes:
        aggregated = self.aggregation.generation if self.aggregation is not None else 0
        generation = (self.resources.generation, aggregated)
        if self._generation != generation:
            self._document = self._build()
            self._written = {}
            digest = hashlib.sha512(orjson.dumps(self._document)).hexdigest().upper()
            self.etag = f'"{digest}"'
            self._generation = generation
        content = self._written.get(serializer)
        if content is None:
            content = self._written[serializer] = _write(serializer, self._document)
        return content

    def _build(self) -> Object:
        names = [""] if self.core else group_names(self.resources)
        custom = [name for name in names if name and is_custom(name, self.resources)]
        names = [name for name in names if name not in custom] + sorted(custom)
        if self.aggregation is not None:
            items = self.aggregation.merge({name: self._group(name) for name in names}, self._merged)
        else:
            items = [self._group(name) for name in names]
        return {"kind": KIND, "apiVersion": API_VERSION, "metadata": {}, "items": items}

    def _group(self, name: str) -> Object:
        versions = [self._version(name, version) for version in versions_of(name, self.resources)]
        return {"metadata": {"name": name} if name else {}, "versions": versions}

    def _version(self, name: str, version: str) -> Object:
        served = (self.resources.of(name, version) or {}).values()
        resources = [_resource(resource) for resource in served]
        return {"version": version, "resources": resources, "freshness": "Current"}

    def _merged(self, name: str) -> Object:
        """A group with versions that an aggregated API server serves."""
        assert self.aggregation is not None
        versions = []
        for registered in self.aggregation.api_group(name)["versions"]:
            version = registered["version"]
            remote = self.aggregation.version_discovery(name, version)
            local = remote is None or self.resources.of(name, version) is not None
            versions.append(self._version(name, version) if local else remote)
        return {"metadata": {"name": name}, "versions": versions}


def _resource(resource: Resource) -> Object:
    own = ("", "") if not resource.custom else (resource.group, resource.version)
    entry: Object = {
        "resource": resource.resource,
        "responseKind": _kind(*own, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    add_optional_names(entry, resource)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _kind(*((sub.group, sub.version) if sub.version else own), sub.kind),
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources.values()
        ]
    return entry


def _kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


def _write(serializer: str, document: Object) -> bytes:
    if serializer == negotiate.YAML:
        return yaml.dumps(document)
    if serializer == negotiate.PROTOBUF:
        return protobuf.wrap(API_VERSION, KIND, protobuf.encode(_list_schema(), document))
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def _list_schema() -> Schema:
    """Protobuf schema of the document, which is not in the catalog."""
    text = Schema("string")
    texts = Schema("list", items=text)
    kind = _struct("GroupVersionKind", group=text, version=text, kind=text)
    sub = _struct(
        "APISubresourceDiscovery", subresource=text, responseKind=kind, acceptedTypes=None, verbs=texts
    )
    resource = _struct(
        "APIResourceDiscovery",
        resource=text,
        responseKind=kind,
        scope=text,
        singularResource=text,
        verbs=texts,
        shortNames=texts,
        categories=texts,
        subresources=Schema("list", items=sub),
    )
    version = _struct(
        "APIVersionDiscovery", version=text, resources=Schema("list", items=resource), freshness=text
    )
    versions = Schema("list", items=version)
    group = _struct("APIGroupDiscovery", metadata=by_name(_META + "ObjectMeta"), versions=versions)
    items = Schema("list", items=group)
    return _struct(KIND, metadata=by_name(_META + "ListMeta"), items=items)


def _struct(name: str, **fields: Schema | None) -> Schema:
    """Struct schema with fields numbered in order. None skips a number."""
    pointers = ("responseKind",)
    return Schema(
        "struct",
        name=f"apidiscovery.v2.{name}",
        fields={
            field: Field(field, schema, number=number, pointer=field in pointers)
            for number, (field, schema) in enumerate(fields.items(), 1)
            if schema is not None
        },
    )
