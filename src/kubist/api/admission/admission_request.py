"""Admission request as webhooks and policies see it: operation, objects, and equivalent resources and versions."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from kubist.api.admission.plugin import CONNECT, DELETE
from kubist.api.resources.context import Context
from kubist.api.resources.resource import Resource, Resources
from kubist.api.resources.strategy import Scale
from kubist.api.verbs import scale
from kubist.api.verbs.bodies import body
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.patch.apply import managers
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.node import Schema

OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Kind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Target(NamedTuple):
    """Resource that a rule matched, either the requested one or an equivalent one, and the kind of its objects."""

    resource: Resource
    kind: Kind


class AdmissionRequest:
    """One request. `new` and `old` are in the stored version, as in plugins."""

    def __init__(
        self,
        ctx: Context,
        new: Object | None,
        old: Object | None,
        resources: Resources,
        *,
        settled: bool = False,
    ) -> None:
        """`settled`: `new` is in its final form. If it has no resourceVersion, it gets that of `old`."""
        self.ctx = ctx
        self.old = _as_asked(ctx, old)
        self.new = _as_asked(ctx, new)
        if settled and self.new is not None and self.old is not None:
            version = self.old["metadata"].get("resourceVersion")
            if version:
                self.new["metadata"].setdefault("resourceVersion", version)
        self.operation = ctx.operation
        self.subresource = ctx.subresource
        self.name = ctx.name
        self.namespace = ctx.namespace
        self.of_namespaces = ctx.resource.resource == "namespaces" and not ctx.resource.group
        if self.of_namespaces:
            self.namespace = ctx.name
        self.target = Target(ctx.resource, kind_of(ctx.resource, ctx.subresource))
        self._resources = resources
        self._views: dict[tuple[int, str], Object] = {}

    def equivalents(self) -> list[Target]:
        """Equivalent resources: other groups or versions that serve the same objects."""
        prefix = self.ctx.resource.prefix
        return [
            Target(resource, kind_of(resource, self.subresource))
            for resource in self._resources
            if resource.prefix == prefix
            and resource is not self.ctx.resource
            and (not self.subresource or self.subresource in resource.subresources)
        ]

    async def see(self, target: Target) -> tuple[Object | None, Object | None]:
        """New and old object in the target's version. Callers must not change them."""
        return await self._view(self.new, target), await self._view(self.old, target)

    async def _view(self, obj: Object | None, target: Target) -> Object | None:
        kind = target.kind
        if obj is None or obj.get("apiVersion") == kind.api_version or obj.get("kind") != kind.kind:
            return obj
        key = (id(obj), kind.api_version)
        view = self._views.get(key)
        if view is None:
            copy = orjson.loads(orjson.dumps(obj))
            view = self._views[key] = await _converted(copy, target.resource, kind.api_version)
        return view

    def schema(self, target: Target) -> Schema:
        """Schema of the target's kind."""
        if target.kind.kind == target.resource.kind:
            return target.resource.schema
        return schema_for(*target.kind)

    def namespace_object(self) -> Object | None:
        """Namespace object of the request, None for a cluster-scoped request."""
        if not self.ctx.namespace:
            return None
        return self.ctx.objects.get("namespaces", self.ctx.namespace)

    async def replace(self, changed: Object, target: Target, *, strict: bool = False) -> bool:
        """Replaces the new object by a mutated one in the target's version: decodes it (`strict`: rejects unknown
        fields), sets the defaults, and converts it back. Returns whether the object changed."""
        assert self.new is not None
        resource, kind = target.resource, target.kind
        home = self.new["apiVersion"]
        of_parent = kind.kind == resource.kind
        expected = body.expected(resource) if of_parent else body.Expected(*kind, self.schema(target))
        decoded = body.decode_parsed(changed, [], expected)
        if strict and decoded.complaints:
            raise status.internal_error(f"strict decoding error: {', '.join(decoded.complaints)}")
        new = decoded.object
        if of_parent:
            resource.strategy.default(new)
            if kind.api_version != home:
                new = await _converted(new, resource, home)
        if new == self.new:
            return False
        self.new.clear()
        self.new.update(new)
        self._views.clear()
        return True

    def check_namespace(self) -> None:
        """Rejects a mutation that changed the object's namespace."""
        metadata = (self.new or {}).get("metadata") or {}
        if self.ctx.namespace and metadata.get("namespace", self.ctx.namespace) != self.ctx.namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )

    def request(self, target: Target) -> Object:
        """AdmissionRequest without its uid and objects."""
        ctx = self.ctx
        request: Object = {
            "kind": target.kind._asdict(),
            "resource": _resource(target.resource),
            "requestKind": self.target.kind._asdict(),
            "requestResource": _resource(self.target.resource),
            "operation": self.operation,
            "userInfo": ctx.user.info(),
            "dryRun": ctx.dry_run,
            "options": self.options(),
        }
        if self.subresource:
            request["subResource"] = request["requestSubResource"] = self.subresource
        if self.name:
            request["name"] = self.name
        if self.namespace:
            request["namespace"] = self.namespace
        return request

    def options(self) -> Object | None:
        """Options object of the request: CreateOptions, UpdateOptions or DeleteOptions; None for CONNECT."""
        ctx = self.ctx
        if self.operation == CONNECT:
            return None
        options: Object = {"kind": OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"}
        if self.operation == DELETE:
            return {**options, **(ctx.options or {})}
        if ctx.dry_run:
            options["dryRun"] = ["All"]
        if ctx.field_manager:
            options["fieldManager"] = ctx.field_manager
        if ctx.query.get("fieldValidation"):
            options["fieldValidation"] = ctx.query["fieldValidation"]
        return options

    def namespace_labels(self) -> dict[str, str] | None:
        """Labels of the request's namespace, or the new labels of a Namespace object. None if the namespace does not
        exist."""
        if self.of_namespaces and not self.subresource and self.operation != DELETE:
            labels: dict[str, str] = (self.new or {"metadata": {}})["metadata"].get("labels") or {}
            return labels
        namespace = self.ctx.objects.get("namespaces", self.namespace)
        return (namespace["metadata"].get("labels") or {}) if namespace is not None else None


async def _converted(obj: Object, resource: Resource, api_version: str) -> Object:
    """Object in another version of its kind. The given object may be changed."""
    if resource.custom is None:
        return resource.strategy.convert(obj, api_version)
    return await resource.custom.conversion.converted(obj, api_version)


def _as_asked(ctx: Context, obj: Object | None) -> Object | None:
    """Scale view of an object that is written through `/scale`; other objects unchanged."""
    if obj is None or ctx.subresource != "scale" or obj.get("kind") == "Scale":
        return obj
    path = ctx.resource.strategy.subresources.get("scale")
    return scale.view(obj, path) if isinstance(path, Scale) else obj


def kind_of(resource: Resource, subresource: str) -> Kind:
    """Kind of the objects in a request. A subresource may have its own kind."""
    info = resource.subresources.get(subresource) if subresource else None
    if info is None:
        return Kind(resource.group, resource.version, resource.kind)
    if info.kind == resource.kind:
        return Kind(resource.group, resource.version, resource.kind)
    return Kind(info.group or resource.group, info.version or resource.version, info.kind)


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


_INVALID_MANAGED_FIELDS = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
    "mutating admission controller; please fix your requests: "
)


def keep_managed_fields_valid(ctx: Context, before: Any, obj: Object) -> None:
    """Revert invalid managedFields that a webhook or policy left, with a warning."""
    metadata = obj.get("metadata") or {}
    after = metadata.get("managedFields")
    if after == before:
        return
    wrong = managers.validate(after or [])
    if wrong:
        ctx.warn(_INVALID_MANAGED_FIELDS + wrong)
        metadata["managedFields"] = before
