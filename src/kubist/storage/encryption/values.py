"""Encrypts and decrypts values by the resource of their key.

A value that cannot be decrypted is returned as stored, with the reason (`Sealed`), so that it does not block
other values.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubist.storage.encryption.config import Encryption, GroupResource
from kubist.storage.encryption.sealed import Sealed, Unreadable
from kubist.storage.encryption.tally import DataContext, Tally
from kubist.storage.encryption.transformer import Transformer
from kubist.storage.store import KeyValue

ROOT = "/registry/"


class Values:
    """`resources` maps key prefixes other than `/registry/GROUP/RESOURCE/` to their resource.

    `prefix` replaces `/registry` in the authenticated key, because AES-GCM authenticates the key as it is in
    etcd. Keys that belong to no resource are stored in plain text.
    """

    def __init__(
        self, encryption: Encryption, resources: Mapping[str, GroupResource], *, prefix: str = "/registry"
    ) -> None:
        self.tally = Tally()
        self._resources = dict(resources)
        self._prefix = prefix
        self.use(encryption)

    def use(self, encryption: Encryption) -> None:
        """Switches to this configuration for reads and writes."""
        self.encryption = encryption
        self._ways: dict[str, tuple[Transformer | None, str]] = {}
        self.tally.config_hash = encryption.content_hash

    def seal(self, key: str, value: bytes) -> bytes:
        way = self._way(key)
        return value if way is None else way[0].seal(value, way[1])

    def open(self, kv: KeyValue) -> KeyValue:
        way = self._way(kv.key)
        if way is None:
            return kv
        transformer, context = way
        try:
            value, _ = transformer.open(kv.value, context)
        except Unreadable as error:
            value = Sealed(kv.value, str(error))
        return KeyValue(kv.key, value, kv.create_revision, kv.mod_revision)

    def stale(self, kv: KeyValue) -> bool:
        """Whether a write would store the same value under another key or provider."""
        way = self._way(kv.key)
        try:
            return way is not None and way[0].open(kv.value, way[1])[1]
        except Unreadable:
            return False

    def _way(self, key: str) -> tuple[Transformer, DataContext] | None:
        """Transformer and context for a key. None: the value is stored in plain text."""
        end = key.find("/", len(ROOT)) + 1
        found = self._ways.get(key[:end])
        if found is None:
            longer = key[: key.find("/", end) + 1]
            found = self._ways.get(longer) or self._find(key[:end], longer)
        transformer, resource = found
        if transformer is None:
            return None
        name = (self._prefix + key[len(ROOT) - 1 :]).encode("utf-8", "surrogateescape")
        return transformer, DataContext(name, resource, self.tally)

    def _find(self, short: str, longer: str) -> tuple[Transformer | None, str]:
        prefix, resource = short, self._resources.get(short)
        if resource is None:
            prefix, resource = longer, self._resources.get(longer)
        if resource is None:
            group, _, plural = longer[len(ROOT) :].rstrip("/").partition("/")
            if "." not in group or not plural:
                return None, ""
            resource = GroupResource(group, plural)
        way = self.encryption.transformer(resource), str(resource)
        self._ways[prefix] = way
        return way
