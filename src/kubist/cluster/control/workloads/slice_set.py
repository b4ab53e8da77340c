"""EndpointSlices of one owner: creates, updates and deletes slices so that they contain the wanted endpoints."""

from __future__ import annotations

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.workloads import pods as of_pods
from kubist.cluster.control.workloads.endpointslice_plan import Group, distribute, ports_key
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError

GROUP = "discovery.k8s.io"
SERVICE = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
NAME_LENGTH = 252
"""Maximum length of a name that becomes the prefix of a slice's name with a hyphen."""


class SliceSet:
    """Slices that one controller manages for one Service."""

    def __init__(self, client: ObjectClient, owner: Object, manager: str, metadata: Object) -> None:
        self._client = client
        self._owner = owner
        self._metadata = metadata
        """Labels and annotations of the slices."""
        self._namespace: str = owner["metadata"]["namespace"]
        self._current = [
            endpoint_slice
            for endpoint_slice in held_slices(client, self._namespace, owner["metadata"]["name"], manager)
            if of_pods.owned(endpoint_slice, owner)
        ]

    async def write(self, groups: list[Group], *, placeholders: tuple[str, ...] = ()) -> None:
        """Writes the endpoints. For each address type of `placeholders` without endpoints there is one empty slice."""
        groups = list(groups)
        present = {group.address_type for group in groups}
        groups += [Group(kind, []) for kind in placeholders if kind not in present]
        by_key: dict[tuple[str, bytes], list[Object]] = {}
        for endpoint_slice in self._current:
            key = (endpoint_slice["addressType"], ports_key(endpoint_slice.get("ports") or ()))
            by_key.setdefault(key, []).append(endpoint_slice)
        plans = [(group, by_key.pop(group.key, [])) for group in groups]
        unused = [endpoint_slice for kept in by_key.values() for endpoint_slice in kept]
        for group, kept in plans:
            await self._write_group(group, kept, unused)
        for endpoint_slice in unused:
            await self._delete(endpoint_slice)

    async def _write_group(self, group: Group, kept: list[Object], unused: list[Object]) -> None:
        """Writes one group. Slices of no group are used before new ones are made."""
        parts = distribute([entry.get("endpoints") or [] for entry in kept], group.endpoints)
        new = parts[len(kept) :] if any(parts) or kept else [[]]
        for index, entry in enumerate(kept):
            if parts[index] or (index == 0 and not any(parts)):
                await self._update(entry, group, parts[index])
            else:
                unused.append(entry)
        for part in new:
            spare = next((entry for entry in unused if entry["addressType"] == group.address_type), None)
            if spare is not None:
                unused.remove(spare)
                await self._update(spare, group, part)
            else:
                await self._create(group, part)

    async def _update(self, endpoint_slice: Object, group: Group, endpoints: list[Object]) -> None:
        body = {"endpoints": endpoints, "ports": group.ports}

        def edit(current: Object) -> Object:
            for part in ("labels", "annotations"):
                current["metadata"].pop(part, None)
            current["metadata"] |= self._metadata
            return {**current, **body}

        metadata = endpoint_slice["metadata"]
        same = all((endpoint_slice.get(part) or []) == value for part, value in body.items())
        if same and all(
            (metadata.get(part) or {}) == (self._metadata.get(part) or {})
            for part in ("labels", "annotations")
        ):
            return
        await self._client.update("endpointslices", metadata["name"], self._namespace, edit, group=GROUP)

    async def _create(self, group: Group, endpoints: list[Object]) -> None:
        new = {
            "metadata": {
                "generateName": f"{self._owner['metadata']['name'][:NAME_LENGTH]}-",
                "ownerReferences": [of_pods.owner_reference(self._owner)],
                **self._metadata,
            },
            "addressType": group.address_type,
            "endpoints": endpoints,
            "ports": group.ports,
        }
        try:
            await self._client.create("endpointslices", new, self._namespace, group=GROUP)
        except APIError as error:
            if not of_pods.is_namespace_terminating(error):
                raise

    async def _delete(self, endpoint_slice: Object) -> None:
        await of_pods.delete(self._client, endpoint_slice, "endpointslices", group=GROUP)


def held_slices(client: ObjectClient, namespace: str, service: str, manager: str) -> list[Object]:
    """Slices of a Service that a controller manages."""
    return [
        client.parsed(entry)
        for entry in client.labelled("endpointslices", namespace, group=GROUP)
        if entry.labels.get(SERVICE) == service and entry.labels.get(MANAGED_BY) == manager
    ]
