"""VolumeAttachment: request to attach a volume to a node, immutable after creation, and its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kubist.api.kinds.core.persistentvolume import validate_spec as validate_volume_spec
from kubist.api.kinds.core.podspec.defaults import default_volume
from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.shared.rules import at_least, field, nullable, struct, subdomain
from kubist.api.kinds.shared.update import StatusOnly, immutable
from kubist.api.kinds.storage.common import text_size, validate_driver_name
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy, Subresource
from kubist.model.meta import fields
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
    errors += subdomain(spec.get("nodeName"), "spec.nodeName")
    errors += _STATUS(obj.get("status"), "status")
    return errors + field("persistentVolumeName", nullable, subdomain)(source, "spec.source")


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


def _validate_size(metadata: dict[str, str] | None, path: str) -> Errors:
    return [fields.too_long(path, 256 * 1024)] if text_size(metadata or {}) > 256 * 1024 else []


def _validate_message(message: str | None, path: str) -> Errors:
    return [fields.too_long(path, 256 * 1024)] if len((message or "").encode()) > 1024 else []


_ERROR = struct(
    field("message", _validate_message),
    field("errorCode", nullable, at_least(0, "must be between 0 and 2147483647, inclusive")),
)
_STATUS = struct(
    field("attachmentMetadata", _validate_size),
    field("attachError", _ERROR),
    field("detachError", _ERROR),
)


strategy = VolumeAttachmentStrategy()
