"""Finalizers of the propagation policy, and the update that removes the last finalizer and thereby deletes the
object."""

from __future__ import annotations

from kubist.api.verbs.options import DeleteOptions
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import FOREGROUND_FINALIZER as FOREGROUND
from kubist.model.meta.objectmeta import ORPHAN_FINALIZER as ORPHAN


def is_finalized(ctx: ResourceRequest, new: Object, old: Object) -> bool:
    """Whether an update removes the last finalizer of a terminating object, which deletes it."""
    before = old["metadata"]
    if "deletionTimestamp" not in before or before.get("deletionGracePeriodSeconds"):
        return False
    return not ctx.resource.strategy.blocks_removal(new)


def set_propagation_finalizers(ctx: ResourceRequest, metadata: Object, options: DeleteOptions) -> None:
    """Add or remove the finalizers `orphan` and `foregroundDeletion`, which tell the garbage collector what to do with
    dependents."""
    before = metadata.get("finalizers") or []
    finalizers = [name for name in before if name not in (ORPHAN, FOREGROUND)]
    orphan, foreground = _propagation(ctx, before, options)
    if orphan:
        finalizers.append(ORPHAN)
    if foreground:
        finalizers.append(FOREGROUND)
    if set(finalizers) == set(before):
        return
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _propagation(ctx: ResourceRequest, before: list[str], options: DeleteOptions) -> tuple[bool, bool]:
    """Propagation as two flags: orphan the dependents, delete the dependents first."""
    policy = options.propagation_policy
    if ctx.resource.strategy.default_propagation == "Unsupported":
        return False, False
    if options.orphan_dependents is not None:
        return options.orphan_dependents, False
    if policy:
        return policy == "Orphan", policy == "Foreground"
    if ORPHAN in before:
        return True, False
    if FOREGROUND in before:
        return False, True
    return ctx.resource.strategy.default_propagation == "Orphan", False
