"""managedFields of the scale subresource, derived from those of the parent object and back.

A Scale has its own `spec.replicas`. Its owners own the replicas field of the parent object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubist.model.patch.apply import managers, sets
from kubist.model.patch.apply.managers import Managed, Owned
from kubist.model.patch.apply.paths import field
from kubist.model.patch.apply.sets import Path, dotted

Entries = list[dict[str, Any]]

SCALE_VERSION = "autoscaling/v1"

_REPLICAS = dotted("spec.replicas")
_REPLICAS_PATH: Path = ("f:spec", "f:replicas")


def to_scale(parent: Entries | None, replicas: Mapping[str, str]) -> Entries:
    """managedFields of the scale of an object with managedFields `parent`.

    `replicas` is the dotted path of the replicas in each version of the kind.
    """
    managed = {
        identity: Owned(SCALE_VERSION, _REPLICAS, owned.time)
        for identity, owned in managers.decode(parent, trusted=True).items()
        if owned.api_version in replicas and sets.has(owned.fields, _path(replicas[owned.api_version]))
    }
    return managers.encode(managed)


def to_parent(
    parent: Entries | None, scale: Entries | None, api_version: str, replicas: Mapping[str, str]
) -> Entries:
    """managedFields of the object after its scale was written with managedFields `scale`.

    New owners of the replicas get an entry in `api_version`. Managers that lost the replicas in `scale` also
    lose them here.
    """
    scaled = managers.decode(scale, trusted=True)
    managed: Managed = {}
    for identity, owned in managers.decode(parent, trusted=True).items():
        if owned.api_version not in replicas:
            continue
        path = _path(replicas[owned.api_version])
        if sets.has(owned.fields, path) and scaled.pop(identity, None) is None:
            fields = sets.difference(owned.fields, sets.of_paths(path))
            if fields:
                managed[identity] = Owned(owned.api_version, fields, owned.time)
        else:
            managed[identity] = owned
    taken = sets.of_paths(_path(replicas[api_version]))
    for identity, owned in scaled.items():
        if sets.has(owned.fields, _REPLICAS_PATH):
            managed[identity] = Owned(api_version, taken)
    return managers.encode(managed)


def _path(dotted_path: str) -> Path:
    return tuple(field(name) for name in dotted_path.split("."))
