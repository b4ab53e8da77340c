"""apply: server-side apply, a PATCH with the configuration of a field manager."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.resources.strategy import Scale, Update
from kubist.api.verbs import managed_fields, write_path
from kubist.api.verbs import scale as scales
from kubist.api.verbs.bodies import body
from kubist.api.verbs.metadata import check_name, match_namespace
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.storage_version import is_converted, to_request_version, to_storage_version
from kubist.base.http.messages import Response
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import json_type
from kubist.base.offload import away
from kubist.model.meta import objectmeta, status
from kubist.model.meta.numerals import odd_number, rounded
from kubist.model.meta.object import Object
from kubist.model.patch import apply as ssa
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import restored
from kubist.model.schema.leaves import WRAP


async def apply(ctx: ResourceRequest, path: Update, representation: Any, force: bool) -> Response:
    configuration, complaints = await away(ctx.long, read, ctx)
    target = body.expected(ctx.resource)

    def completed(merged: Object, live: Object | None, created: bool) -> Object:
        new = _decoded(ctx, configuration, merged, target, None if is_converted(ctx) else live, new=created)
        ctx.resource.strategy.default(new)
        return new

    async def applied(old: Object | None, fresh: write_path.Fresh) -> Object:
        live = to_request_version(ctx, await fresh()) if old is not None else None
        merged = await _merge(ctx, configuration, live, force, path.reset_fields)
        complain(ctx, complaints)
        new = await away(ctx.long, completed, merged, live, old is None)
        metadata = new["metadata"]
        if live is None and (uid := metadata.get("uid")):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise ctx.conflict(ctx.info.name, why)
        if live is None or ctx.resource.namespaced:
            match_namespace(ctx, metadata)
        else:
            metadata.pop("namespace", None)
        check_name(ctx, metadata)
        new = to_storage_version(ctx, new)
        objectmeta.deduplicate_owner_references(metadata)
        await ctx.api.admission.admit(ctx, new, old)
        return new

    creates = not ctx.info.subresource or path.creates or ctx.resource.strategy.create_on_update
    outcome = await write_path.update_object(ctx, path, applied, create_absent=creates, lend=True)
    return await write_path.respond(ctx, outcome, representation)


def read(ctx: ResourceRequest) -> tuple[Object, list[str]]:
    """Applied configuration, parsed from YAML, and a message for each duplicate key."""
    try:
        document = body.parse_yaml(ctx)
    except DecodeError as error:
        raise status.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    value = {} if document.value is None else document.value
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    return rounded(value) if odd_number(orjson.dumps(value)) else value, document.complaints


def complain(ctx: ResourceRequest, complaints: list[str]) -> None:
    """Report duplicate keys according to fieldValidation: warnings, or 400 for Strict."""
    if not complaints or ctx.field_validation == "Ignore":
        return
    if ctx.field_validation == "Strict":
        listed = "".join(f"\n  {complaint}" for complaint in complaints)
        why = f"error converting YAML to JSON: yaml: unmarshal errors:{listed}"
        raise status.bad_request(f"error strict decoding YAML: {why}")
    for complaint in complaints:
        ctx.warn(complaint)


async def _merge(
    ctx: ResourceRequest, configuration: Object, live: Object | None, force: bool, reset: tuple[str, ...]
) -> Object:
    resource = ctx.resource
    check_kind(configuration, resource.api_version, resource.kind)

    def merge(convert: ssa.Convert | None) -> Object:
        return ssa.apply(
            resource.schema,
            live,
            configuration,
            manager=ctx.field_manager,
            api_version=resource.api_version,
            now=ctx.now,
            force=force,
            subresource=ctx.info.subresource,
            reset_fields=reset,
            convert=convert,
        )

    return await managed_fields.converting(ctx, merge)


def check_kind(configuration: Object, api_version: str, kind: str) -> None:
    """Check that the configuration has the kind and apiVersion of the request; 400 otherwise."""
    if configuration.get("apiVersion") != api_version or configuration.get("kind") != kind:
        raise status.bad_request(f"invalid object type: {_group_version_kind(configuration)}")


def _group_version_kind(configuration: Object) -> str:
    """Group, version and kind of a configuration as messages show them."""
    api_version, kind = (
        value if isinstance(value := configuration.get(name), str) else "" for name in ("apiVersion", "kind")
    )
    group, _, version = api_version.rpartition("/")
    if "/" in group:  # without a readable version there is no kind, either
        group = version = kind = ""
    return f"{group}/{version}, Kind={kind}"


def _identity(configuration: Object) -> str:
    """Namespace, name and kind of a configuration as messages show them."""
    metadata = configuration.get("metadata") or {}
    where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    return f"{where}; {_group_version_kind(configuration)}"


def _decoded(
    ctx: ResourceRequest,
    configuration: Object,
    merged: Object,
    target: body.Expected,
    stored: Object | None = None,
    *,
    new: bool,
) -> Object:
    try:
        if target.custom is not None:
            return target.custom.version.adopt(merged)
        decoded = body.decode_parsed(merged, [], target, WRAP, stored=stored)
    except DecodeError as error:
        why = f"unable to convert unstructured object to {_group_version_kind(configuration)}: {restored(error)}"
        raise status.plain_error(
            f"failed to convert new object ({_identity(configuration)}) to proper version: {why}"
        ) from None
    return body.as_sent(ctx, target, decoded, new=new)


def _owned_here(obj: Object, api_version: str) -> Object:
    """Copy of an object with only the managedFields of one apiVersion."""
    entries = obj["metadata"].get("managedFields") or []
    kept = [entry for entry in entries if entry.get("apiVersion") == api_version]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": kept}}


def _unscalable(what: str) -> status.APIError:
    """Error for an apply to the scale of a custom resource. In kube-apiserver it always fails, unless it conflicts."""
    why = f"request to convert CR to an invalid group/version: {managed_fields.SCALE}"
    return status.plain_error(f"{what} to proper version: {why}")


async def apply_scale(ctx: ResourceRequest, path: Scale, representation: Any, force: bool) -> Response:
    """Apply to the scale subresource, whose only owned field is spec.replicas."""
    configuration, complaints = await away(ctx.long, read, ctx)
    check_kind(configuration, managed_fields.SCALE, "Scale")
    schema = schema_for("autoscaling", "v1", "Scale")
    target = scales.expected_scale()

    async def applied(old: Object) -> Object:
        live = scales.view(old, path)
        if ctx.resource.custom:
            old = _owned_here(old, ctx.resource.api_version)
        owners = live["metadata"]["managedFields"] = managed_fields.of_scale(ctx, old, path)
        if ctx.resource.custom and not owners:
            what = "failed to convert live object (/; autoscaling/v1, Kind=Scale)"
            raise _unscalable(f"failed to create manager for existing fields: {what}")
        merged = ssa.apply(
            schema,
            live,
            configuration,
            manager=ctx.field_manager,
            api_version=managed_fields.SCALE,
            now=ctx.now,
            force=force,
            subresource="scale",
        )
        complain(ctx, complaints)
        if ctx.resource.custom:
            raise _unscalable(f"failed to convert new object ({_identity(configuration)})")
        return _decoded(ctx, configuration, merged, target, new=False)

    return await scales.write(ctx, path, applied, representation, None)
