"""scale subresource: an object's replicas as an autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from kubist.api.resources.strategy import Scale
from kubist.api.verbs import managed_fields, write_path
from kubist.api.verbs.bodies import body
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond_object
from kubist.api.verbs.storage_version import decode_entry
from kubist.base.http.messages import Response
from kubist.model.meta import fields, names, objectmeta, status
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for

UNSET = -(2**31)
"""Replicas that a patch sees in a custom object without replicas. A result with this value is rejected."""


def expected_scale() -> body.Expected:
    return body.Expected("autoscaling", "v1", "Scale", schema_for("autoscaling", "v1", "Scale"))


def view(obj: Object, path: Scale) -> Object:
    """Scale of an object."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    scale["metadata"] = {name: metadata[name] for name in kept if name in metadata}
    replicas, status_replicas, text = path.values(obj)
    scale["spec"] = {"replicas": replicas} if replicas else {}
    scale["status"] = {"replicas": status_replicas}
    if text:
        scale["status"]["selector"] = text
    return scale


def scaling(ctx: ResourceRequest) -> Scale:
    subresource = ctx.resource.strategy.subresources.get("scale")
    if not isinstance(subresource, Scale):
        raise status.method_not_allowed()
    return subresource


async def get(ctx: ResourceRequest) -> Response:
    path = scaling(ctx)
    representation = negotiate_representation(ctx, "object")
    entry = await ctx.api.registry.read(ctx.resource, ctx.info.namespace, ctx.info.name)
    if entry is None:
        raise ctx.not_found()
    obj = await decode_entry(ctx, entry)
    if ctx.resource.custom and path.values(obj)[0] is None:
        raise status.internal_error(f'the spec replicas field ".{path.spec_replicas}" does not exist')
    return await respond_object(ctx, 200, view(obj, path), representation)


async def write(ctx: ResourceRequest, path: Scale, transform: Any, encoder: Any, uid: str | None) -> Response:
    async def rescaled(old: Object | None, fresh: write_path.Fresh) -> Object:
        assert old is not None
        seen = view(old, path)
        scale = await transform(old)
        if not ctx.resource.custom:  # their validation names the CRD's field instead
            check(ctx, scale, old["metadata"]["uid"])
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if ctx.resource.custom and replicas == UNSET:
            raise status.bad_request(f'the spec replicas field ".{path.spec_replicas}" cannot be empty')
        new = set_replicas(path, await fresh(), replicas)
        version = scale["metadata"].get("resourceVersion")
        if version:
            new["metadata"]["resourceVersion"] = version
        elif ctx.resource.strategy.unconditional_update:
            new["metadata"].pop("resourceVersion", None)
        if ctx.info.subresource == "scale" and "managedFields" not in scale["metadata"]:
            live = {**seen, "metadata": {**seen["metadata"]}}
            live["metadata"]["managedFields"] = managed_fields.of_scale(ctx, old, path)
            managed_fields.track_scale(ctx, scale, live)
        await ctx.api.admission.admit(ctx, scale, seen)
        managed_fields.from_scale(ctx, new, scale, path)
        return new

    outcome = await write_path.update_object(ctx, ctx.resource.strategy, rescaled, precondition_uid=uid)
    obj = await decode_entry(ctx, outcome.entry) if outcome.entry is not None else outcome.object
    return await respond_object(ctx, 200, view(obj, path), encoder)


def set_replicas(path: Scale, old: Object, replicas: int) -> Object:
    """Copy of an object with other replicas."""
    new = dict(old)
    new["metadata"] = dict(old["metadata"])
    target = new
    *parents, last = path.spec_replicas.split(".")
    for part in parents:
        target[part] = dict(target.get(part) or {})
        target = target[part]
    target[last] = replicas
    return new


def check(ctx: ResourceRequest, scale: Object, current_uid: str) -> None:
    """Validate a Scale: 422 for invalid fields, 409 if its uid belongs to another object."""
    metadata, name = scale["metadata"], ctx.info.name
    errors = objectmeta.validate_create(
        {"name": name, "namespace": ctx.info.namespace, **metadata},
        namespaced=True,
        validate_name=names.dns_subdomain,
    )
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        errors.append(fields.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    if errors:
        raise status.invalid("autoscaling", "Scale", name, errors)
    uid = metadata.get("uid") or current_uid
    if uid != current_uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current_uid}"
        raise status.conflict(ctx.resource.group, f"{ctx.resource.resource}/scale", name, why)
