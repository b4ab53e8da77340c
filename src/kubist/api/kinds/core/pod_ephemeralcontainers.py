"""Pod `/ephemeralcontainers`: adds debug containers to a running pod. Other changes in the body are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.core.pod_update import validate_annotations
from kubist.api.kinds.core.pod_validation import validate_again, validate_with_exceptions
from kubist.api.kinds.core.podspec.annotations import MIRROR_POD
from kubist.api.kinds.core.podspec.disabled import drop_disabled_fields
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.shared.update import keep_metadata
from kubist.api.resources.strategy import Errors, Update, keep
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import forbidden
from kubist.model.meta.object import Object
from kubist.model.schema.internals import difference

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_FIELD = "ephemeralContainers"


class PodEphemeralContainers(Update):
    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        containers = (new.get("spec") or {}).get(_FIELD)
        new["spec"] = {key: value for key, value in old["spec"].items() if key != _FIELD}
        if containers:
            new["spec"][_FIELD] = containers
            drop_disabled_fields(new["spec"], old["spec"])
        keep(new, old, "status")
        keep_metadata(new, old)

    metadata_rules = ()

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return validate_with_exceptions(_validate, new, old, allow_privileged=ctx.config.allow_privileged)


def _validate(new: Object, old: Object, options: Options) -> Errors:
    if MIRROR_POD in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods do not support ephemeral containers")]
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    errors += validate_again(new, options)
    errors += validate_annotations(new, old, options)
    by_name = {container.get("name", ""): container for container in new["spec"].get(_FIELD) or ()}
    for container in old["spec"].get(_FIELD) or ():
        name = container.get("name", "")
        if name not in by_name:
            why = f"existing ephemeral containers {quoted(name)} may not be removed\n"
            errors.append(forbidden(f"spec.{_FIELD}", why))
        elif by_name[name] != container:
            changed = difference("core.EphemeralContainer", container, by_name[name])
            why = f"existing ephemeral containers {quoted(name)} may not be changed\n{changed}"
            errors.append(forbidden(f"spec.{_FIELD}", why))
    return errors
