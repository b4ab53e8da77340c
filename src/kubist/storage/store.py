"""The `Store` contract: etcd's data model on one page.

A store holds keys, bytes and revisions; it does not know objects. It has one global revision that rises by one
or more with every change. Implementations: `memory` and `sqlite` (one process), `remote` (several processes on
one machine, one of which owns the file) and `etcd` (several machines).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from kubist.errors import DamagedStore, DataDirectoryInUse, StartError


class KeyValue(NamedTuple):
    """One key as of `mod_revision`, the revision that wrote it."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class Event(NamedTuple):
    """One change. A deletion has `kv` None. `prev` is the earlier value, None if the key was absent."""

    revision: int
    key: str
    kv: KeyValue | None
    prev: KeyValue | None


class Batch(NamedTuple):
    """Item of a watch: changes in revision order, complete up to and including `revision`.

    A Batch without events reports progress: no other change happened below the prefix up to `revision`.
    """

    revision: int
    events: tuple[Event, ...]


class Scan(NamedTuple):
    """Page of keys in byte order at `revision`. `more`: keys follow the last one returned."""

    revision: int
    items: list[KeyValue]
    more: bool


class Write(NamedTuple):
    """One requested change: `value` None deletes, `expected` 0 creates. `ttl`: seconds until the key expires."""

    key: str
    value: bytes | None
    expected: int
    ttl: int = 0


class StoreError(Exception):
    """Base class of the errors of a store."""


class Conflict(StoreError):
    """The key is not at the expected revision. `current` is its current value (None: absent)."""

    def __init__(self, current: KeyValue | None) -> None:
        super().__init__("the key is not at the expected revision")
        self.current = current


class Compacted(StoreError):
    """The requested revision is compacted. `revision` is the oldest revision that is available."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"required revision has been compacted; the oldest is {revision}")
        self.revision = revision


class FutureRevision(StoreError):
    """The requested revision is in the future. `revision` is the current one."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"required revision is a future revision; the current is {revision}")
        self.revision = revision


class Unavailable(StoreError):
    """The store cannot respond now (disk full, etcd unreachable). The change may or may not have happened."""


class DamageFound(Unavailable, DamagedStore):
    """A file that was opened turns out to be damaged."""


class OpenFailed(StoreError, StartError):
    """The store cannot be opened: locked by another process, corrupt, or not writable. The message is complete."""


class StoreInUse(OpenFailed, DataDirectoryInUse):
    """Another process has locked the store."""


class StoreDamaged(OpenFailed, DamagedStore):
    """The file of the store is damaged, or is not a database."""


class Store(Protocol):
    """Durable, ordered, versioned keys. A change is durable before the call that made it returns."""

    local: bool
    """True if one server, with any number of processes, is the only writer. It then needs no leader election."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def revision(self) -> int:
        """Current revision, linearizable: not lower than the revision of any completed change."""
        ...

    async def check(self) -> None:
        """Raises `Unavailable` if the disk of this machine takes no writes. Changes nothing."""
        ...

    async def request_progress(self) -> None:
        """Makes open watches yield a Batch with the current revision soon. Not needed if `local`."""
        ...

    async def get(self, key: str, revision: int = 0) -> KeyValue | None: ...

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        """Keys below `prefix` at `revision` (0: current), starting at `start` (a full key, inclusive)."""
        ...

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        """Creates a key and returns its revision. `Conflict` if it exists. `ttl`: seconds until it expires."""
        ...

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        """Replaces the key if its mod_revision is `expected`, and returns the new revision. Otherwise
        `Conflict`."""
        ...

    async def delete(self, key: str, expected: int) -> int:
        """Deletes the key if its mod_revision is `expected`, and returns the revision of the deletion.
        Otherwise `Conflict`."""
        ...

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        """All changes below `prefix` after revision `after`, without end, in order and without duplicates.

        The first Batch, which may be empty, reports how far history was replayed. Raises `Compacted` if that
        history is deleted, and `Unavailable` if the store is unreachable (watch again to resume).
        """
        ...

    async def compact(self, revision: int) -> None:
        """Deletes history below `revision`. Reads at `revision` and later stay possible."""
        ...


@runtime_checkable
class AtomicStore(Store, Protocol):
    """Store of this process, which can make any number of changes at once."""

    async def write_all(self, writes: Sequence[Write]) -> int:
        """Makes all changes, or none: `Conflict` with the first key that is not at its expected revision. Returns the
        revision of the last change. Watches receive all changes in one Batch."""
        ...
