"""Content of a new cluster: the template, another cluster, a named snapshot, or a backup."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubist.api.config import Config
from kubist.model.meta import fields, status
from kubist.server.clusters.cluster import Cluster
from kubist.server.clusters.spec import KIND, Source, Spec
from kubist.server.clusters.template import Templates
from kubist.storage.backup.snapshot_file import read_image
from kubist.storage.encryption.sealed import ENCRYPTED
from kubist.storage.image import take_image
from kubist.storage.memory import StoreImage
from kubist.storage.store import OpenFailed
from kubist.testbench.bench import Bench
from kubist.testbench.control_api.field_types import GROUP


async def read_source(
    spec: Spec, parent: Cluster | None, templates: Templates, host: Bench, config: Config
) -> Source:
    """State that a specification asks for. `parent` is the cluster that it names. Raises 422."""
    if spec.snapshot or spec.backup:
        return Source(await _file(spec, await _bench(parent, host), config))
    if parent is not None:
        server = await parent.running()
        image = await take_image(server.registry.cache)
        clock = server.bench.clock if server.bench is not None else None
        moved = (clock.now(), clock.speed) if clock is not None and clock.is_moved else None
        return Source(image.store, image.cache, clock=moved)
    image = await templates.image(spec.controllers_or_all)
    return Source(image.store, image.cache, is_template=True)


async def _bench(parent: Cluster | None, host: Bench) -> Bench:
    """Test bench with the snapshots: the named cluster's, or the host's."""
    if parent is None:
        return host
    bench = (await parent.running()).bench
    assert bench is not None
    return bench


async def _file(spec: Spec, bench: Bench, config: Config) -> StoreImage:
    """Content of a snapshot or a backup."""
    field = "snapshot" if spec.snapshot else "backup"
    if spec.backup and not Path(spec.backup).is_absolute():
        raise _invalid(field, spec.backup, "must be the absolute path of a file on the host")
    path = Path(spec.backup)
    if spec.snapshot:
        try:
            path = bench.snapshots.path_of(spec.snapshot)
        except status.APIError:
            raise unknown(field, spec.snapshot) from None
    try:
        image = await asyncio.to_thread(read_image, path)
    except OpenFailed as error:
        raise _invalid(field, spec.snapshot or spec.backup, str(error)) from None
    sealed = sum(kv.value.startswith(ENCRYPTED) for kv in image.values.values())
    if sealed and not config.encryption_provider_config:
        why = f"{sealed} values are encrypted: the host needs the --encryption-provider-config file"
        raise _invalid(field, spec.snapshot or spec.backup, why)
    return image


def _invalid(field: str, value: str, why: str) -> status.APIError:
    return status.invalid(GROUP, KIND, "", [fields.invalid(field, value, why)])


def unknown(field: str, value: str) -> status.APIError:
    """422 for a source that does not exist."""
    return status.invalid(GROUP, KIND, "", [fields.not_found(field, value)])
