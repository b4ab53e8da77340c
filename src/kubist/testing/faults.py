"""Faults of a cluster: requests and watches that fail on demand."""

from __future__ import annotations

import datetime
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Never, Self

from kubist.base.hints import did_you_mean
from kubist.model.meta.object import Object
from kubist.testing.clock import Duration
from kubist.testing.errors import Refused

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

PATH = "/kubist/v1/faults"
Texts = str | Sequence[str]
"""One value, or several of which one must match."""


class Fault:
    """A fault rule of a cluster. At the end of a `with` block it is removed."""

    def __init__(self, request: Callable[..., Object], state: Object) -> None:
        self._request = request
        self._state = state
        self._is_removed = False
        self.id: str = state["id"]

    def __repr__(self) -> str:
        state = self._read()
        rule = ", ".join(
            f"{name}={value!r}" for name, value in state.items() if name not in ("id", "hits", "matches")
        )
        removed = ", removed" if self._is_removed else ""
        return f"<fault {self.id}: {rule}; hits {state['hits']} of {state['matches']} matches{removed}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def _read(self) -> Object:
        if not self._is_removed:
            self._state = self._request("GET", f"{PATH}/{self.id}")
        return self._state

    @property
    def hits(self) -> int:
        """Number of requests or watches on which the rule acted."""
        return int(self._read()["hits"])

    @property
    def matches(self) -> int:
        """Number of requests that matched. The rule acts on some of them only with `nth`, `every` or `probability`."""
        return int(self._read()["matches"])

    def wait(self, hits: int = 1, timeout: float = 10.0) -> None:
        """Waits until the rule has acted that many times. Raises TimeoutError."""
        deadline = time.perf_counter() + timeout
        while self.hits < hits:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"after {timeout:g} seconds: {self!r}")
            time.sleep(0.01)

    def remove(self) -> None:
        """Removes the rule. Requests and events that it holds are released. The counts stay readable."""
        if self._is_removed:
            return
        try:
            self._state = self._request("DELETE", f"{PATH}/{self.id}")
        except Refused as error:  # `clear` removed it
            if error.code != 404:
                raise
        self._is_removed = True


class ClusterFaults:
    """Fault rules of a cluster. They act on requests of clients over HTTP, not on control loops of the server. They
    spare the helpers of the test, unless a rule names their user agent `kubist-testing`.

    with cluster.faults.add(verb="update", resource="deployments", status=409, times=2) as fault:
        ...
    assert fault.hits == 2
    """

    def __init__(self, request: Callable[..., Object]) -> None:
        self._request = request

    def __repr__(self) -> str:
        return f"<faults: {len(self)} rules>"

    def __iter__(self) -> Iterator[Fault]:
        """Rules in order of evaluation."""
        return iter([Fault(self._request, state) for state in self._request("GET", PATH)["items"]])

    def __len__(self) -> int:
        return len(self._request("GET", PATH)["items"])

    def add(
        self,
        *,
        verb: Texts | None = None,
        resource: Texts | None = None,
        namespace: Texts | None = None,
        name: Texts | None = None,
        label_selector: str | None = None,
        user: Texts | None = None,
        user_agent: Texts | None = None,
        expression: str | None = None,
        nth: int | None = None,
        every: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
        times: int | None = None,
        status: int | None = None,
        reason: str | None = None,
        message: str | None = None,
        retry_after: Duration | None = None,
        delay: Duration | None = None,
        delay_after: Duration | None = None,
        close: Literal["before", "after"] | None = None,
        truncate: int | None = None,
        cut_after: int | None = None,
        pause: Duration | None = None,
        delay_events: Duration | None = None,
        withhold_bookmarks: bool | None = None,
        stale_read: bool | str | int | None = None,
        expire_history: bool | None = None,
        take_lease: str | None = None,
        lease_duration: Duration | None = None,
        **unknown: Never,
    ) -> Fault:
        """Adds a rule.

        Match: `verb`, `resource` (`deployments`, `deployments.apps`, `pods/status`, `*`), `namespace`, `name`,
        `label_selector`, `user`, `user_agent` (prefix), `expression` (CEL over `request`), then `nth`, `every` or
        `probability` with `seed`; at most `times` requests.
        Actions: `status`, `delay` before and `delay_after` the write, `close` the connection, `truncate` the body;
        for watches `cut_after` events, `pause`, `delay_events`, `withhold_bookmarks`; `stale_read`,
        `expire_history`, `take_lease`.
        """
        arguments = {key: value for key, value in locals().items() if key not in ("self", "unknown")}
        for argument in unknown:
            raise TypeError(f'faults.add() has no argument "{argument}"{did_you_mean(argument, ARGUMENTS)}')
        if isinstance(stale_read, int) and not isinstance(stale_read, bool):
            arguments["stale_read"] = str(stale_read)
        rule = {_camel_case(key): _plain(value) for key, value in arguments.items() if value is not None}
        return Fault(self._request, self._request("POST", PATH, rule))

    def clear(self) -> None:
        """Removes all rules."""
        self._request("DELETE", PATH)


ARGUMENTS = tuple(
    name
    for name, parameter in inspect.signature(ClusterFaults.add).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _plain(value: Any) -> Any:
    """JSON value of an argument."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value
