"""managedFields after mutation. Invalid managedFields that a webhook or policy left are reverted, with a warning."""

from __future__ import annotations

from typing import Any

from kubist.api.resources.context import Context
from kubist.model.meta.object import Object
from kubist.model.patch.apply import managers

WARNING = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
    "mutating admission controller; please fix your requests: "
)


def keep_valid(ctx: Context, before: Any, obj: Object) -> None:
    metadata = obj.get("metadata") or {}
    after = metadata.get("managedFields")
    if after == before:
        return
    wrong = managers.validate(after or [])
    if wrong:
        ctx.warn(WARNING + wrong)
        metadata["managedFields"] = before
