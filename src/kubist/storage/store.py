"""The contract every store answers: etcd's, on one page.

A store knows keys, bytes and revisions; never an object. It has one global revision that rises by one or
more with every change. Implementations: `sqlite` (one process), `remote` (several on one machine, one of which
has the file) and `etcd` (several machines).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol


class KeyValue(NamedTuple):
    """One key as of `mod_revision`, the revision that wrote it."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class Event(NamedTuple):
    """One change. A deletion has `kv` None; `prev` is what the key held before the change, if anything."""

    revision: int
    key: str
    kv: KeyValue | None
    prev: KeyValue | None


class Batch(NamedTuple):
    """What a watch yields: changes in revision order, complete up to and including `revision`.

    No events means progress only: nothing else happened below the prefix up to `revision`.
    """

    revision: int
    events: tuple[Event, ...]


class Scan(NamedTuple):
    """A page of keys in byte order, all as of `revision`. `more`: keys follow the last one returned."""

    revision: int
    items: list[KeyValue]
    more: bool


class StoreError(Exception):
    """Base of what a store raises."""


class Conflict(StoreError):
    """The key is not at the expected revision; `current` is what it holds now (None: absent)."""

    def __init__(self, current: KeyValue | None) -> None:
        super().__init__("the key is not at the expected revision")
        self.current = current


class Compacted(StoreError):
    """History at the asked revision is gone; `revision` is the oldest that can still be asked for."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"required revision has been compacted; the oldest is {revision}")
        self.revision = revision


class FutureRevision(StoreError):
    """The asked revision has not happened yet; `revision` is the current one."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"required revision is a future revision; the current is {revision}")
        self.revision = revision


class Unavailable(StoreError):
    """The store cannot answer now (disk full, etcd away). The change may or may not have happened."""


class OpenFailed(StoreError):
    """The store cannot be opened: locked by another process, corrupt, unwritable. The message says it all."""


class Store(Protocol):
    """Durable, ordered, versioned keys. A change is durable before the call that made it returns."""

    local: bool
    """True where one server, of however many processes, is all that writes: it need not agree with others."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def revision(self) -> int:
        """The current revision, linearizable: not lower than that of any change answered anywhere."""
        ...

    async def request_progress(self) -> None:
        """Have open watches yield a Batch soon that says how far they have come. Nothing to do where `local`."""
        ...

    async def get(self, key: str, revision: int = 0) -> KeyValue | None: ...

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        """Keys below `prefix`, from `start` (a full key, inclusive) on, as of `revision` (0: now)."""
        ...

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        """Write an absent key; its revision. `Conflict` if present. `ttl`: seconds until it expires by itself."""
        ...

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        """Replace the key if its mod_revision is `expected`; the new revision. Otherwise `Conflict`."""
        ...

    async def delete(self, key: str, expected: int) -> int:
        """Remove the key if its mod_revision is `expected`; the deletion's revision. Otherwise `Conflict`."""
        ...

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        """Every change below `prefix` with a revision greater than `after`, forever, in order, none twice.

        Starts with a Batch (empty if need be) that says how far history has been replayed. Raises
        `Compacted` if that history is gone, `Unavailable` if the store went away (watch again to resume).
        """
        ...

    async def compact(self, revision: int) -> None:
        """Forget history below `revision`; reads at it and after stay possible."""
        ...
