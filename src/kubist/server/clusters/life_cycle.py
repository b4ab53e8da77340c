"""All clusters of a host: creation, deletion, time to live, unloading, and recovery after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubist.base import files
from kubist.base.clock import Timer
from kubist.model.meta import fields, names, status
from kubist.server.clusters import credentials, manifests
from kubist.server.clusters.cluster import DATABASE, GROUP, RESOURCE, Cluster, Host
from kubist.server.clusters.logical_server import prefix
from kubist.server.clusters.sources import Templates, read_source, unknown
from kubist.server.clusters.spec import ALL_LOOPS, DISK, KIND, MEMORY, Record, Spec

log = logging.getLogger("kubist.clusters")

MOST = 10_000
"""Maximum number of clusters."""
MOST_WITHOUT_CLIENTS = 32
"""Maximum number of clusters that stay loaded although no client has authenticated since. Without it, one anonymous
client could load every cluster."""
RECORD = "cluster.json"
HIDDEN = "."
"""Directories whose name begins with this are clusters in memory, or clusters that are being deleted."""
ISSUERS = 4
"""Maximum number of earlier addresses of the host whose tokens a cluster still accepts."""
GENERATED = "cluster-"


class Clusters:
    """The clusters of one host. `directory` has those on disk; None if the host has no data directory."""

    def __init__(self, host: Host, directory: Path | None) -> None:
        self._host = host
        self._directory = directory
        self._memory = Path()
        self.by_name: dict[str, Cluster] = {}
        self._reserved: set[str] = set()
        """Names of clusters that are being created."""
        self._without_clients: list[Cluster] = []
        """Loaded clusters to which no client has authenticated yet, the first one loaded first."""
        self._templates = Templates(host.config, host.port)
        self._timer: Timer | None = None
        self._due = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    @property
    def has_disk(self) -> bool:
        return self._directory is not None

    async def start(self) -> None:
        """Finds the clusters on disk. They are loaded by their first request."""
        if self._directory is None:
            self._memory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kubist-clusters-"))
        else:
            for record, directory, token in await asyncio.to_thread(self._read, self._directory):
                cluster = Cluster(self._host, record, directory, token, self._loaded)
                self.by_name[record.name] = cluster
                self._expect(cluster)
            self._memory = self._directory / f"{HIDDEN}memory"
            files.make_directory(self._memory)
        self._spawn(self._prepare())

    async def _prepare(self) -> None:
        """Makes the template of most clusters, so that the first cluster is created as fast as the others."""
        await self._templates.image(ALL_LOOPS)

    def _read(self, directory: Path) -> list[tuple[Record, Path, str]]:
        """Records, directories and tokens of the clusters on disk. Removes what a crash left behind."""
        files.make_directory(directory)
        records = []
        for path in sorted(directory.iterdir()):
            try:
                if path.name.startswith(HIDDEN) or not _has_record(path):
                    shutil.rmtree(path, ignore_errors=True)
                    continue
                stored = Record.from_json(json.loads((path / RECORD).read_bytes()))
                record = self._with_issuer(replace(stored, name=path.name))
                if record != stored:
                    _write_record(path, record)
                records.append((record, path, credentials.read_token(path)))
            except (OSError, ValueError, TypeError, KeyError, StopIteration, IndexError) as error:
                log.error("the cluster in %s is left out: %s: %s", path, type(error).__name__, error)
        return records

    def _with_issuer(self, record: Record) -> Record:
        """The record with the host's present address as the issuer of new tokens."""
        issuer = self._host.url + prefix(record.name)
        others = (other for other in record.issuers if other != issuer)
        return replace(record, issuers=(issuer, *others)[:ISSUERS])

    async def stop(self) -> None:
        """Stops all clusters. Those in memory are lost."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await self._templates.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(cluster.close() for cluster in self.by_name.values()), return_exceptions=True)
        self.by_name.clear()
        await asyncio.to_thread(shutil.rmtree, self._memory, True)

    def get(self, name: str) -> Cluster:
        """A cluster by its name. Raises 404."""
        cluster = self.by_name.get(name)
        if cluster is None:
            raise status.not_found(GROUP, RESOURCE, name)
        return cluster

    async def create(self, spec: Spec) -> Cluster:
        """Creates a cluster. If that fails, nothing is left of it."""
        name = spec.name or self._generate()
        if name in self.by_name or name in self._reserved:
            raise _taken(name)
        if len(self.by_name) + len(self._reserved) >= MOST:
            raise status.forbidden(GROUP, RESOURCE, name, f"there are already {MOST} clusters")
        source = self.by_name.get(spec.fork)
        if spec.fork and source is None:
            raise unknown("fork", spec.fork)
        self._reserved.add(name)
        try:
            return await self._create(self._record(name, spec, source), spec, source)
        finally:
            self._reserved.discard(name)

    def _generate(self) -> str:
        while True:
            name = names.generate(GENERATED)
            if name not in self.by_name and name not in self._reserved:
                return name

    def _record(self, name: str, spec: Spec, source: Cluster | None) -> Record:
        now = self._host.clock.now()
        controllers, workloads = spec.controllers, spec.workloads
        if controllers is None:
            controllers = source.record.controllers if source is not None else ALL_LOOPS
        if workloads is None:
            workloads = source.record.workloads if source is not None else False
        expires = None if spec.time_to_live is None else now + spec.time_to_live
        record = Record(
            name, str(uuid.uuid4()), now, spec.storage, expires, controllers, workloads, spec.limits
        )
        return self._with_issuer(record)

    async def _create(self, record: Record, spec: Spec, source: Cluster | None) -> Cluster:
        host = self._host
        content = await read_source(spec, source, self._templates, host.bench, host.config)
        parent = self._memory if record.storage == MEMORY or self._directory is None else self._directory
        directory = parent / record.name
        try:
            directory.mkdir(files.DIRECTORY_MODE)
        except FileExistsError:  # a cluster that could not be read
            raise _taken(record.name) from None
        cluster: Cluster | None = None
        try:
            cluster = Cluster(host, record, directory, credentials.make(directory), self._loaded)
            await cluster.create(content)
            await manifests.apply(await cluster.running(), cluster.token, spec.manifests)
            if record.storage == DISK:
                await asyncio.to_thread(_complete, directory, record)
            if self._is_stopped:
                raise status.unavailable("the host stops")
        except BaseException:
            if cluster is not None:
                await asyncio.shield(cluster.close())
            await asyncio.to_thread(shutil.rmtree, directory, True)
            raise
        self.by_name[record.name] = cluster
        self._expect(cluster)
        return cluster

    async def delete(self, name: str) -> Cluster:
        """Deletes a cluster. Its streams end, and its files are gone when this returns."""
        cluster = self.get(name)
        del self.by_name[name]
        self._reserved.add(name)
        try:
            await asyncio.shield(self._spawn(self._remove(cluster)))
        finally:
            self._reserved.discard(name)
        return cluster

    async def _remove(self, cluster: Cluster) -> None:
        hidden = cluster.directory.with_name(f"{HIDDEN}{cluster.record.uid}")
        try:
            await cluster.close()
        finally:
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                os.rename(cluster.directory, hidden)
            await asyncio.to_thread(shutil.rmtree, hidden, True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the clusters failed", exc_info=error)

    def _loaded(self, cluster: Cluster) -> None:
        """Schedules the unloading of a cluster that was just loaded. Unloads others to which no client has
        authenticated, if there are too many."""
        self._expect(cluster)
        waiting = [
            other
            for other in self._without_clients
            if other.server is not None and not other.has_clients and other is not cluster
        ]
        excess = len(waiting) + 1 - MOST_WITHOUT_CLIENTS
        for other in [other for other in waiting if other.can_unload][: max(0, excess)]:
            self._spawn(other.unload())
        self._without_clients = [*waiting, cluster]

    def _expect(self, cluster: Cluster) -> None:
        """Sets the timer for a cluster's end or unloading, unless something else is due earlier."""
        clock, idle = self._host.clock, self._host.config.clusters_idle_timeout
        waits = []
        if cluster.record.expires is not None:
            waits.append(cluster.record.expires - clock.now())
        if cluster.record.storage == DISK and idle and cluster.server is not None:
            waits.append(cluster.used + idle - clock.monotonic())
        if not waits:
            return
        seconds = max(0.0, min(waits))
        due = clock.monotonic() + seconds
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = clock.call_after(seconds, self._ring)

    def _ring(self) -> None:
        """Deletes and unloads everything that is due, and sets the timer again."""
        self._timer = None
        now, idle = self._host.clock.now(), self._host.config.clusters_idle_timeout
        for cluster in list(self.by_name.values()):
            expires = cluster.record.expires
            if expires is not None and expires <= now:
                self._spawn(self._expire(cluster))
                continue
            if idle and self._host.clock.monotonic() - cluster.used >= idle:
                if cluster.can_unload:
                    self._spawn(cluster.unload())
                cluster.used = self._host.clock.monotonic()  # the next check is due after the same time
            self._expect(cluster)

    async def _expire(self, cluster: Cluster) -> None:
        if self.by_name.get(cluster.name) is cluster:
            log.info("the time to live of the cluster %s is over", cluster.name)
            await self.delete(cluster.name)


def _complete(directory: Path, record: Record) -> None:
    """Makes a new cluster on disk durable. A directory without a record is removed at the next start."""
    for path in (directory / DATABASE, *(directory / "pki").iterdir(), directory / "pki"):
        files.sync(path)
    _write_record(directory, record)


def _has_record(directory: Path) -> bool:
    """Whether a cluster was created completely. A disk error must not count as a no, because the cluster would be
    deleted."""
    try:
        (directory / RECORD).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _write_record(directory: Path, record: Record) -> None:
    with files.draft(directory / RECORD, durable=True) as draft:
        draft.write_text(json.dumps(record.to_json()))
    files.sync(directory.parent)


def _taken(name: str) -> status.APIError:
    return status.invalid(
        GROUP, KIND, name, [fields.invalid("name", name, "a cluster with this name already exists")]
    )
