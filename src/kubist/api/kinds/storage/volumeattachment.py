"""VolumeAttachment: request to attach a volume to a node, immutable after creation, and its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kubist.api.kinds.core.persistentvolume import validate_spec as validate_volume_spec
from kubist.api.kinds.core.podspec.defaults import default_volume
from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.shared.update import StatusOnly, immutable
from kubist.api.kinds.storage.common import text_size, validate_driver_name
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Subresource
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object

_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class VolumeAttachmentStatus(StatusOnly):
    metadata_rules = ("object",)

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return _validate_update(new, old)


class VolumeAttachmentStrategy(Strategy):
    returns_deleted = True
    unconditional_update = False
    reset_fields = ("status",)
    first_status: ClassVar = {"attached": False}
    metadata_rules = ("object",)
    subresources: Mapping[str, Subresource] = {"status": VolumeAttachmentStatus()}

    def default(self, obj: Object) -> None:
        inline = ((obj.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
        if inline is not None:
            round_up_to_milli(inline.get("capacity"))
            default_volume(inline)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new) if old is None else _validate_update(new, old)


def _validate_update(new: Object, old: Object) -> Errors:
    return _validate(new) + immutable(
        new.get("spec"), old.get("spec"), "spec", "storage.VolumeAttachmentSpec"
    )


def _validate(obj: Object) -> Errors:
    spec = obj.get("spec") or {}
    errors = validate_driver_name(spec.get("attacher", ""), "spec.attacher")
    source = spec.get("source") or {}
    errors += _validate_source(source, "spec.source")
    node = spec.get("nodeName", "")
    errors += [fields.invalid("spec.nodeName", node, message) for message in names.dns_subdomain(node)]
    errors += _validate_status(obj.get("status") or {})
    volume = source.get("persistentVolumeName")
    if volume is not None:
        errors += [
            fields.invalid("spec.source.persistentVolumeName", volume, message)
            for message in names.dns_subdomain(volume)
        ]
    return errors


def _validate_source(source: Object, path: str) -> Errors:
    inline = source.get("inlineVolumeSpec")
    name = source.get("persistentVolumeName")
    if inline is None and name is None:
        return [fields.required(path, _ONE_SOURCE)]
    if inline is not None and name is not None:
        return [fields.forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return validate_volume_spec(inline, "", f"{path}.inlineVolumeSpec", inline=True)
    if not name:
        return [
            fields.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")
        ]
    return []


def _validate_status(status: Object) -> Errors:
    errors = []
    metadata = status.get("attachmentMetadata") or {}
    if text_size(metadata) > 256 * 1024:
        errors.append(fields.too_long("status.attachmentMetadata", 256 * 1024))
    for name in ("attachError", "detachError"):
        error = status.get(name)
        if error is None:
            continue
        if len(error.get("message", "").encode()) > 1024:
            errors.append(fields.too_long(f"status.{name}.message", 256 * 1024))
        code = error.get("errorCode")
        if code is not None and code < 0:
            why = "must be between 0 and 2147483647, inclusive"
            errors.append(fields.invalid(f"status.{name}.errorCode", code, why))
    return errors


strategy = VolumeAttachmentStrategy()
