"""ControllerRevisions: past templates of a StatefulSet or DaemonSet, for rollbacks."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import controller_of
from kubist.cluster.control.workloads import pods as of_pods
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector
from kubist.model.meta.status import APIError

HASH_LABEL = "controller-revision-hash"
"""Label of pods, and of the revisions of DaemonSets."""
STATEFUL_HASH_LABEL = "controller.kubernetes.io/hash"
"""Label of the revisions of StatefulSets."""
RESOURCE = "controllerrevisions"


class History(NamedTuple):
    """Revision of the owner's present template, all its revisions (oldest first), and the new collisionCount."""

    present: Object
    all: list[Object]
    collisions: int


async def history(client: ObjectClient, owner: Object, label: str) -> History:
    """Revisions of an owner. That of the present template is created if it is missing, and gets the highest number if
    the template is used again. `label` is the key of the hash."""
    collisions = owner["status"].get("collisionCount", 0)
    revisions = await _claimed(client, owner)
    data = data_of(owner)
    last = revisions[-1]["revision"] if revisions else 0
    same = [revision for revision in revisions if revision["data"] == data]
    if same:
        present = same[-1]
        if present["revision"] == last:
            return History(present, revisions, collisions)
        moved = await _renumber(client, present, last + 1)
        return History(moved, [*(r for r in revisions if r is not present), moved], collisions)
    made, collisions = await _create(client, owner, label, last + 1, collisions)
    return History(made, [*revisions, made], collisions)


def data_of(owner: Object) -> Object:
    """Content of the revision of the owner's present template: a patch that restores it. Its keys are sorted, because
    clients compare it with their own text of the template byte by byte."""
    patch = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
    data: Object = orjson.loads(orjson.dumps(patch, option=orjson.OPT_SORT_KEYS))
    return data


async def _claimed(client: ObjectClient, owner: Object) -> list[Object]:
    """Revisions of the owner by number. Orphans with matching labels are adopted."""
    metadata = owner["metadata"]
    selector = label_selector(owner["spec"].get("selector") or {})
    terminating = "deletionTimestamp" in metadata
    revisions = []
    for entry in client.labelled(RESOURCE, metadata["namespace"], group="apps"):
        if metadata["uid"].encode() in entry.tail:
            revision: Object | None = client.parsed(entry)
        elif not terminating and not selector.empty and selector.matches(entry.labels):
            if controller_of(client.parsed(entry)) is not None:
                continue
            revision = await of_pods.adopt(client, RESOURCE, "apps", client.parsed(entry), owner)
        else:
            continue
        if revision is not None and of_pods.owned(revision, owner):
            revisions.append(revision)
    return sorted(revisions, key=lambda r: (int(r["revision"]), r["metadata"]["creationTimestamp"]))


async def _create(
    client: ObjectClient, owner: Object, label: str, number: int, collisions: int
) -> tuple[Object, int]:
    metadata, template = owner["metadata"], owner["spec"]["template"]
    data = data_of(owner)
    while True:
        digest = of_pods.template_hash(template, collisions)
        name = f"{metadata['name'][:223]}-{digest}"
        labels = (template.get("metadata") or {}).get("labels") or {}
        new: Object = {
            "metadata": {
                "name": name,
                "labels": {**labels, label: digest},
                "ownerReferences": [of_pods.owner_reference(owner)],
            },
            "data": data,
            "revision": number,
        }
        if metadata.get("annotations"):
            new["metadata"]["annotations"] = dict(metadata["annotations"])
        try:
            return await client.create(RESOURCE, new, metadata["namespace"], group="apps"), collisions
        except APIError as error:
            revision = client.get(RESOURCE, name, metadata["namespace"], group="apps")
            if error.reason != "AlreadyExists" or revision is None:
                raise
        if revision["data"] == data:
            return revision, collisions
        collisions += 1


async def _renumber(client: ObjectClient, revision: Object, number: int) -> Object:
    """Makes the revision of a restored template the newest one."""

    def edit(current: Object) -> Object:
        current["revision"] = number
        return current

    metadata = revision["metadata"]
    changed = await client.update(RESOURCE, metadata["name"], metadata["namespace"], edit, group="apps")
    return changed or revision


async def delete_unused(client: ObjectClient, revisions: list[Object], used: set[str], limit: int) -> None:
    """Deletes the oldest unused revisions above `limit`. `used` are names."""
    idle = [revision for revision in revisions if revision["metadata"]["name"] not in used]
    for revision in idle[: max(len(idle) - limit, 0)]:
        await of_pods.delete(client, revision, RESOURCE, group="apps")
