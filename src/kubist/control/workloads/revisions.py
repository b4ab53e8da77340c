"""ControllerRevisions: past templates of a StatefulSet or DaemonSet, for rollbacks."""

from __future__ import annotations

from kubist.control.workloads import pods as of_pods
from kubist.meta.object import Object
from kubist.meta.status import APIError
from kubist.objectclient import ObjectClient

HASH_LABEL = "controller-revision-hash"
RESOURCE = "controllerrevisions"


async def current(client: ObjectClient, owner: Object) -> tuple[Object, list[Object]]:
    """Revision of the owner's present template, created if missing, and all its revisions, oldest first."""
    metadata, template = owner["metadata"], owner["spec"]["template"]
    held = [
        entry.object()
        for entry in client.labelled(RESOURCE, metadata["namespace"], group="apps")
        if metadata["uid"].encode() in entry.tail
    ]
    held = sorted((r for r in held if of_pods.owned(r, owner)), key=lambda r: int(r["revision"]))
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    last = held[-1]["revision"] if held else 0
    for revision in held:
        if revision["data"] == data:
            if revision["revision"] == last:
                return revision, held
            moved = await _renumber(client, revision, last + 1)
            return moved, [*(r for r in held if r is not revision), moved]
    digest = of_pods.template_hash(template)
    new = {
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "labels": {**(template["metadata"].get("labels") or {}), HASH_LABEL: digest},
            "ownerReferences": [of_pods.owner_reference(owner)],
        },
        "data": data,
        "revision": last + 1,
    }
    try:
        made = await client.create(RESOURCE, new, metadata["namespace"], group="apps")
    except APIError as error:
        found = client.get(RESOURCE, f"{metadata['name']}-{digest}", metadata["namespace"], group="apps")
        if error.reason != "AlreadyExists" or found is None:
            raise
        made = found
    return made, [*held, made]


async def _renumber(client: ObjectClient, revision: Object, number: int) -> Object:
    """Makes the revision of a restored template the newest one."""

    def edit(held: Object) -> Object:
        held["revision"] = number
        return held

    metadata = revision["metadata"]
    changed = await client.update(RESOURCE, metadata["name"], metadata["namespace"], edit, group="apps")
    return changed or revision


async def delete_unused(client: ObjectClient, revisions: list[Object], used: set[str], limit: int) -> None:
    """Deletes the oldest unused revisions above `limit`. `used` are names."""
    idle = [revision for revision in revisions if revision["metadata"]["name"] not in used]
    for revision in idle[: max(len(idle) - limit, 0)]:
        await of_pods.delete(client, revision, RESOURCE, group="apps")
