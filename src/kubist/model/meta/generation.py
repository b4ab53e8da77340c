"""metadata.generation: counts the changes of the desired state of an object."""

from __future__ import annotations

from kubist.model.meta.object import Object


def raise_generation(new: Object, old: Object) -> None:
    """Number the new object one above the old one, which may have no generation."""
    new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def raise_generation_if_set(metadata: Object) -> None:
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
