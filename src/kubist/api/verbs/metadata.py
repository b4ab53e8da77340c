"""Metadata steps of the write path: names, namespaces and system fields of written objects."""

from __future__ import annotations

from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import new_uid

SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def drop_system_fields(metadata: Object) -> None:
    """Drop the fields of a new object that only the server sets."""
    for name in SYSTEM_FIELDS:
        if name in metadata:
            del metadata[name]


def set_name(ctx: ResourceRequest, metadata: Object) -> bool:
    """Generate a name from generateName if the object has none. Returns whether generateName is set."""
    name, prefix = metadata.get("name", ""), metadata.get("generateName")
    if prefix and not name:
        name = metadata["name"] = ctx.resource.strategy.generate_name(prefix)
        if labels := metadata.get("labels"):
            # kube-apiserver continues with a copy here: a Job no longer shares the map with its template.
            metadata["labels"] = dict(labels)
    ctx.name = name
    return bool(prefix)


def set_system_fields(ctx: ResourceRequest, metadata: Object) -> None:
    """Set the uid and the creation time of a new object."""
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = ctx.now


def match_namespace(ctx: ResourceRequest, metadata: Object) -> None:
    """Set the namespace of the URL; 400 if the object names another one."""
    if not ctx.resource.namespaced:
        metadata.pop("namespace", None)
        return
    namespace = metadata.get("namespace", "")
    if namespace and namespace != ctx.info.namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = ctx.info.namespace


def check_name(ctx: ResourceRequest, metadata: Object) -> None:
    """Check that the object has the name of the URL; 400 otherwise."""
    name = metadata.get("name", "")
    if not name:
        raise status.bad_request(
            f"the name of the object ({ctx.info.name} based on URL) was undeterminable: name must be provided"
        )
    if name != ctx.info.name:
        message = f"the name of the object ({name}) does not match the name on the URL ({ctx.info.name})"
        raise status.bad_request(message)


def check_same_object(ctx: ResourceRequest, new: Object, old: Object) -> None:
    """Check that a patch changed neither the name nor the namespace; 400 otherwise."""
    metadata, before = new["metadata"], old["metadata"]
    where = before.get("namespace", "")
    if ctx.resource.namespaced and metadata.setdefault("namespace", where) != where:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    check_name(ctx, metadata)


def carry_over_system_fields(new: Object, old: Object) -> None:
    """Copy the system fields that an update can neither change nor remove from the stored object."""
    metadata, before = new["metadata"], old["metadata"]
    for name in ("uid", "deletionGracePeriodSeconds"):
        if name in before and metadata.get(name) is None:
            metadata[name] = before[name]
    if "deletionTimestamp" in before:
        metadata["deletionTimestamp"] = before["deletionTimestamp"]
    for name in ("creationTimestamp", "generation", "namespace", "selfLink"):
        if name in before:
            metadata[name] = before[name]
        elif name in metadata:
            del metadata[name]
    if "name" not in metadata:
        metadata["name"] = before["name"]
