"""Transformers selected by the prefix of the stored value: the first writes, all of them read.

Used twice: for the providers of a resource, and for the keys of a provider.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from kubist.storage.encryption.sealed import Unreadable
from kubist.storage.encryption.tally import DataContext


class Transformer(Protocol):
    """Encrypts and decrypts values."""

    def seal(self, data: bytes, context: DataContext) -> bytes: ...

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        """Plain value, and whether it is stale: a write would use another key or provider. Raises `Unreadable`."""
        ...


class Choice:
    """Tries transformers by prefix. `otherwise` is the error message for a value that no prefix matches."""

    def __init__(self, options: Sequence[tuple[bytes, Transformer]], otherwise: str) -> None:
        self.options = list(options)
        self._otherwise = otherwise

    def seal(self, data: bytes, context: DataContext) -> bytes:
        prefix, transformer = self.options[0]
        began = time.perf_counter()
        sealed = transformer.seal(data, context)
        context.tally.add(context.resource, "to_storage", prefix.decode(), began, ok=True)
        return prefix + sealed if prefix else sealed

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        began = time.perf_counter()
        failures: list[str] = []
        for place, (prefix, transformer) in enumerate(self.options):
            if not data.startswith(prefix):
                continue
            shown = prefix.decode() or "identity"
            try:
                opened, stale = transformer.open(data[len(prefix) :], context)
            except Unreadable as error:
                # Identity has an empty prefix, so it also sees values of other providers. One cipher may have
                # several providers.
                if prefix:
                    context.tally.add(context.resource, "from_storage", shown, began, ok=False)
                    failures.append(str(error))
                continue
            context.tally.add(context.resource, "from_storage", shown, began, ok=True)
            return opened, stale or place > 0
        if failures:
            reasons = list(dict.fromkeys(failures))
            raise Unreadable(reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]")
        context.tally.add(context.resource, "from_storage", "unknown", began, ok=False)
        raise Unreadable(self._otherwise)
