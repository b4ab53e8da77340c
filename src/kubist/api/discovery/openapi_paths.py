"""Operations of OpenAPI documents, derived from the served resources. v2 and v3 documents are written from the same
operations.

An operation refers to types by their OpenAPI names. Each document format has its own syntax for the references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kubist.api.discovery.openapi_parameters import CONNECT, DELETE, LIST, PATCH, WATCH, WRITE
from kubist.api.resources.resource import Resource, SubresourceInfo
from kubist.model.schema import catalog

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
ALL = (JSON, YAML, PROTOBUF)
STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
ANY = ("*/*",)
TEXT = "string"
"""Type of plain-text responses."""


@dataclass(slots=True)
class Operation:
    """One method of one path."""

    method: str
    id: str
    tag: str
    description: str
    responses: dict[str, str]
    action: str = ""
    kind: tuple[str, str, str] | None = None
    parameters: tuple[str, ...] = ()
    body: str = ""
    body_required: bool = True
    consumes: tuple[str, ...] = ANY
    produces: tuple[str, ...] = ALL


@dataclass(slots=True)
class Path:
    path: str
    parameters: tuple[str, ...] = ()
    """Parameters in the path itself, and parameters that all its operations take."""
    operations: list[Operation] = field(default_factory=list)


def words(group: str) -> list[str]:
    """Words of a group's name for identifiers."""
    return re.split(r"[.-]", group.removesuffix(".k8s.io")) if group else ["core"]


def identifier(group: str, version: str = "") -> str:
    return "".join(_title(word) for word in (*words(group), version))


def tag(group: str, version: str = "") -> str:
    first, *rest = words(group)
    name = first + "".join(map(_title, rest))
    return f"{name}_{version}" if version else name


def _title(word: str) -> str:
    return word[:1].upper() + word[1:]


def type_name(group: str, version: str, kind: str) -> str:
    """OpenAPI name of a built-in kind."""
    return catalog.schema_for(group, version, kind).name


def custom_name(group: str, version: str, kind: str) -> str:
    """OpenAPI name of a custom kind: the group reversed, then version and kind."""
    return ".".join((*reversed(group.split(".")), version, kind))


def resource_paths(resource: Resource) -> Iterator[Path]:
    """All paths of a resource."""
    return _Describer(resource).paths()


_MARKED = ("Namespace", "CustomResourceDefinition")
"""Kinds that return the object on deletion, although kube-apiserver's document says Status."""


class _Describer:
    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.custom = resource.custom
        group, version = resource.group, resource.version
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        self.root = root
        self.scoped = f"{root}{scope}/{resource.resource}"
        self.gv = identifier(group, version)
        self.tag = tag(group, version)
        self.name = ("Namespaced" if resource.namespaced else "") + resource.kind
        self.kind = (group, version, resource.kind)
        named = custom_name if self.custom else type_name
        self.type = named(group, version, resource.kind)
        self.list_type = self._list_type()
        self.namespace = ("namespace",) if resource.namespaced else ()
        self.consumes = (JSON, YAML) if self.custom else ANY
        self.produces = (JSON, YAML) if self.custom else ALL

    def _list_type(self) -> str:
        resource = self.resource
        if "list" not in resource.verbs:
            return ""
        if self.custom:
            return custom_name(resource.group, resource.version, resource.list_kind)
        return type_name(resource.group, resource.version, resource.list_kind)

    def operation(
        self, method: str, verb: str, action: str, responses: dict[str, str], **rest: Any
    ) -> Operation:
        settings = {
            "tag": self.tag,
            "kind": self.kind,
            "produces": self.produces,
            "consumes": self.consumes,
            **rest,
        }
        name = settings.pop("name", self.name)
        noun = f"objects of kind {self.resource.kind}" if "list" in action else f"a {self.resource.kind}"
        words = {"post": "create", "put": "replace", "get": "read", "deletecollection": "delete"}
        said = f"{words.get(action, action.replace('watchlist', 'watch'))} {noun}"
        return Operation(
            method, f"{verb}{self.gv}{name}", description=said, action=action, responses=responses, **settings
        )

    def paths(self) -> Iterator[Path]:
        resource = self.resource
        verbs = set(resource.verbs)
        if "list" in verbs and resource.namespaced:
            everywhere = self._list(resource.kind + "ForAllNamespaces")
            yield Path(f"{self.root}/{resource.resource}", ("pretty",), [everywhere])
        collection = Path(self.scoped, (*self.namespace, "pretty"))
        if "list" in verbs:
            collection.operations.append(self._list(self.name))
        if "create" in verbs:
            collection.operations.append(self._create(self.name, self.type))
        if "deletecollection" in verbs:
            collection.operations.append(self._delete_collection())
        if collection.operations:
            yield collection
        if "get" in verbs:
            yield self._object(verbs)
        for sub in resource.subresources.values():
            yield from self._sub(sub)
        if "watch" in verbs and not self.custom:
            yield from self._watches()

    def _list(self, name: str) -> Operation:
        return self.operation(
            "get",
            "list",
            "list",
            {"200": self.list_type},
            name=name,
            parameters=LIST,
            produces=self.produces if self.custom else (*ALL, *STREAMS),
        )

    def _create(self, name: str, type: str, **rest: Any) -> Operation:
        responses = dict.fromkeys(("200", "201", "202"), type)
        return self.operation(
            "post", "create", "post", responses, name=name, parameters=WRITE, body=type, **rest
        )

    def _delete_collection(self) -> Operation:
        parameters = LIST if self.custom else tuple(p for p in (*LIST, *DELETE) if p not in WATCH)
        return self.operation(
            "delete",
            "delete",
            "deletecollection",
            {"200": META + "Status"},
            name="Collection" + self.name,
            parameters=parameters,
            body="" if self.custom else META + "DeleteOptions",
            body_required=False,
        )

    def _object(self, verbs: set[str]) -> Path:
        path = Path(f"{self.scoped}/{{name}}", ("name", *self.namespace, "pretty"))
        path.operations.append(self._read(self.name, self.type))
        if "update" in verbs:
            path.operations.append(self._replace(self.name, self.type))
        if "delete" in verbs:
            answers = not self.custom and self.resource.strategy.returns_deleted
            gone = self.type if answers and self.resource.kind not in _MARKED else META + "Status"
            path.operations.append(
                self.operation(
                    "delete",
                    "delete",
                    "delete",
                    {"200": gone, "202": gone},
                    parameters=DELETE,
                    body=META + "DeleteOptions",
                    body_required=False,
                )
            )
        if "patch" in verbs:
            path.operations.append(self._patch(self.name, self.type))
        return path

    def _read(self, name: str, type: str, **rest: Any) -> Operation:
        parameters = ("resourceVersion",) if self.custom else ()
        return self.operation("get", "read", "get", {"200": type}, name=name, parameters=parameters, **rest)

    def _replace(self, name: str, type: str, **rest: Any) -> Operation:
        return self.operation(
            "put",
            "replace",
            "put",
            {"200": type, "201": type},
            name=name,
            parameters=WRITE,
            body=type,
            **rest,
        )

    def _patch(self, name: str, type: str, **rest: Any) -> Operation:
        codes = ("200",) if self.custom else ("200", "201")
        return self.operation(
            "patch",
            "patch",
            "patch",
            dict.fromkeys(codes, type),
            name=name,
            parameters=PATCH,
            body=META + "Patch",
            **{**rest, "consumes": tuple(p for p in PATCHES if not (self.custom and "strategic" in p))},
        )

    def _sub(self, sub: SubresourceInfo) -> Iterator[Path]:
        name = self.name + _title(sub.name)
        if (sub.name, sub.kind) in CONNECT and sub.name != "log":
            yield from self._connect(sub, name)
            return
        path = Path(f"{self.scoped}/{{name}}/{sub.name}", ("name", *self.namespace, "pretty"))
        kind = self.kind
        type = self.type
        if sub.version:
            type = type_name(sub.group, sub.version, sub.kind)
            kind = kind if self.custom else (sub.group, sub.version, sub.kind)
        elif sub.kind != self.resource.kind and not self.custom:
            type = type_name(self.resource.group, self.resource.version, sub.kind)
            kind = (self.resource.group, self.resource.version, sub.kind)
        if sub.name == "log":
            path.operations.append(self._log(name))
        elif "get" in sub.verbs:
            path.operations.append(self._read(name, type, kind=kind))
        if "update" in sub.verbs:
            path.operations.append(self._replace(name, type, kind=kind))
        if "create" in sub.verbs:
            path.operations.append(self._create(name, type, kind=kind))
        if "patch" in sub.verbs:
            path.operations.append(self._patch(name, type, kind=kind))
        yield path

    def _log(self, name: str) -> Operation:
        return self.operation(
            "get",
            "read",
            "get",
            {"200": TEXT},
            name=name,
            parameters=CONNECT["log", "Pod"],
            produces=("text/plain", *ALL),
        )

    def _connect(self, sub: SubresourceInfo, name: str) -> Iterator[Path]:
        proxied = sub.name == "proxy"
        methods = ("get", "put", "post", "delete", "options", "head", "patch") if proxied else ("get", "post")
        base = Path(f"{self.scoped}/{{name}}/{sub.name}", ("name", *self.namespace))
        paths = [(base, "")]
        if proxied:
            paths.append((Path(base.path + "/{path}", ("name", *self.namespace, "path")), "WithPath"))
        for path, suffix in paths:
            for method in methods:
                path.operations.append(
                    self.operation(
                        method,
                        "connect",
                        "connect",
                        {"200": TEXT},
                        name=_title(method) + name + suffix,
                        kind=("", "v1", sub.kind),
                        parameters=CONNECT[sub.name, sub.kind],
                        produces=ANY,
                    )
                )
            yield path

    def _watches(self) -> Iterator[Path]:
        resource, parameters = self.resource, (*LIST, "pretty")
        produces = (*ALL, *STREAMS)
        below = f"{self.root}/watch" + self.scoped[len(self.root) :]
        named = {"produces": produces, "parameters": parameters}
        event = {"200": META + "WatchEvent"}
        if resource.namespaced:
            name = resource.kind + "ListForAllNamespaces"
            everywhere = self.operation("get", "watch", "watchlist", event, name=name, **named)
            yield Path(f"{self.root}/watch/{resource.resource}", (), [everywhere])
        listed = self.operation("get", "watch", "watchlist", event, name=self.name + "List", **named)
        yield Path(below, self.namespace, [listed])
        one = self.operation("get", "watch", "watch", event, **named)
        yield Path(below + "/{name}", ("name", *self.namespace), [one])


def group_version_path(group: str, version: str) -> Path:
    """Path that lists the resources of a group-version."""
    root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    name = f"get{identifier(group, version)}APIResources"
    return _document(root, name, tag(group, version), "list the resources", META + "APIResourceList")


def group_path(group: str) -> Path:
    name = f"get{identifier(group)}APIGroup"
    return _document(f"/apis/{group}/", name, tag(group), "read the group", META + "APIGroup")


def root_paths() -> dict[str, Path]:
    """Documents that belong to no group, by document name."""
    version = _document(
        "/version/",
        "getCodeVersion",
        "version",
        "read the version of the server",
        "io.k8s.apimachinery.pkg.version.Info",
    )
    version.operations[0].consumes = version.operations[0].produces = (JSON,)
    issuer = _document(
        "/.well-known/openid-configuration/",
        "getServiceAccountIssuerOpenIDConfiguration",
        "WellKnown",
        "read the issuer of service account tokens",
        TEXT,
    )
    keys = _document(
        "/openid/v1/jwks/",
        "getServiceAccountIssuerOpenIDKeyset",
        "openid",
        "read the keys by which tokens of service accounts are verified",
        TEXT,
    )
    issuer.operations[0].consumes = keys.operations[0].consumes = ()
    issuer.operations[0].produces, keys.operations[0].produces = (JSON,), ("application/jwk-set+json",)
    return {
        ".well-known/openid-configuration": issuer,
        "openid/v1/jwks": keys,
        "api": _document("/api/", "getCoreAPIVersions", "core", "list the versions", META + "APIVersions"),
        "apis": _document("/apis/", "getAPIVersions", "apis", "list the groups", META + "APIGroupList"),
        "version": version,
    }


def _document(path: str, id: str, tag: str, description: str, type: str) -> Path:
    operation = Operation("get", id, tag, description, {"200": type}, consumes=ALL)
    return Path(path, (), [operation])
