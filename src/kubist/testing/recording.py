"""Recording of a cluster: the requests of all clients, while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from kubist.model.meta.object import Object
from kubist.testing.recorded_request import RecordedRequest
from kubist.testing.refused import Refused
from kubist.testing.requests import Requests

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

PATH = "/kubist/v1/recordings"


class Recording(Requests):
    """Requests of a cluster. Each use reads the newest ones. At the end of a `with` block the recording stops, and the
    requests stay readable."""

    def __init__(self, cluster: Cluster, spec: Object) -> None:
        super().__init__([])
        self._cluster = cluster
        self._lines: dict[int, Object] = {}
        self._runs = True
        self.id: str = cluster.request("POST", PATH, spec)["id"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the recording. The recorded requests stay readable."""
        if self._runs:
            self._read()
        if self._runs:
            self._runs = False
            self._cluster.request("DELETE", f"{PATH}/{self.id}")

    @property
    def dropped(self) -> int:
        self._read()
        return self._dropped

    def _read(self) -> Sequence[RecordedRequest]:
        """Reads the new requests, and again those whose watch was open."""
        if self._cluster.loop is None:
            self._runs = False  # the cluster was stopped
        if not self._runs:
            return self._found
        after = max(self._lines, default=0)
        after = min([after, *(id_ - 1 for id_, line in self._lines.items() if line.get("open"))])
        try:
            lines: list[Object] = self._cluster.request("GET", f"{PATH}/{self.id}?after={after}")
        except Refused as error:  # somebody else ended it
            if error.code != 404:
                raise
            self._runs = False
            return self._found
        for line in lines:
            if "id" in line:
                self._lines[line["id"]] = line
            else:
                self._dropped = int(line["dropped"])
        self._found = [RecordedRequest(self._lines[id_]) for id_ in sorted(self._lines)]
        return self._found


def spec_of(criteria: dict[str, Any]) -> Object:
    """JSON of the arguments of `cluster.recording`."""
    names = {"agent": "userAgent", "max_entries": "maxEntries", "max_bytes": "maxBytes"}
    return {
        names.get(name, name): list(value) if isinstance(value, (tuple, set, frozenset)) else value
        for name, value in criteria.items()
        if value is not None
    }
