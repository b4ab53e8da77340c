"""Several ways to keep a value, told apart by what it begins with: the first one writes, all of them read.

Providers of a resource are chosen between in this way, and the keys of a provider in turn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from kubist.storage.encryption.sealed import Unreadable
from kubist.storage.encryption.tally import DataContext


class Transformer(Protocol):
    """Plain values to stored ones and back."""

    def seal(self, data: bytes, context: DataContext) -> bytes: ...

    def open(self, data: bytes, context: DataContext) -> tuple[bytes, bool]:
        """The plain value, and whether it is stale: a write would store it in another way. Or `Unreadable`."""
        ...


class Choice:
    """`options`: prefix and transformer each; `otherwise` says what is wrong with a value that has none of them."""

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
                # Plain text is what no other option claims; and of one cipher there may be several providers.
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
