"""Finalizers: those of the propagation policy, and the update that removes the last one and so deletes the object."""

from __future__ import annotations

from kubist.meta.object import Object
from kubist.meta.objectmeta import FOREGROUND_FINALIZER as FOREGROUND
from kubist.meta.objectmeta import ORPHAN_FINALIZER as ORPHAN
from kubist.verbs.call import Call
from kubist.verbs.options import DeleteOptions


def is_finalized(call: Call, new: Object, old: Object) -> bool:
    """Whether an update removes the last finalizer of a terminating object, which deletes it."""
    before = old["metadata"]
    if "deletionTimestamp" not in before or before.get("deletionGracePeriodSeconds"):
        return False
    return not call.resource.strategy.held(new)


def set_propagation_finalizers(call: Call, metadata: Object, options: DeleteOptions) -> None:
    """Add or remove the finalizers `orphan` and `foregroundDeletion`, which tell the garbage collector what to do with
    dependents."""
    before = metadata.get("finalizers") or []
    wanted = [name for name in before if name not in (ORPHAN, FOREGROUND)]
    orphan, foreground = _propagation(call, before, options)
    if orphan:
        wanted.append(ORPHAN)
    if foreground:
        wanted.append(FOREGROUND)
    if set(wanted) == set(before):
        return
    if wanted:
        metadata["finalizers"] = wanted
    else:
        metadata.pop("finalizers", None)


def _propagation(call: Call, before: list[str], options: DeleteOptions) -> tuple[bool, bool]:
    """Propagation as two flags: orphan the dependents, delete the dependents first."""
    policy = options.propagation_policy
    if call.resource.strategy.default_propagation == "Unsupported":
        return False, False
    if options.orphan_dependents is not None:
        return options.orphan_dependents, False
    if policy:
        return policy == "Orphan", policy == "Foreground"
    if ORPHAN in before:
        return True, False
    if FOREGROUND in before:
        return False, True
    return call.resource.strategy.default_propagation == "Orphan", False
