"""The admission chain: mutating plugins in order, later validating ones. A plugin is switched by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kubist.context import Context

Object = dict[str, Any]


class Plugin(Protocol):
    """One admission plugin. `new` is None for a deletion, `old` for a creation. Refusals are APIErrors."""

    name: str

    async def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        """Change `new` in place, or refuse."""
        ...

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None: ...


class Admission:
    """The plugins of a server."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = list(plugins)

    async def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        for plugin in self.plugins:
            await plugin.admit(ctx, new, old)

    async def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        for plugin in self.plugins:
            await plugin.validate(ctx, new, old)
