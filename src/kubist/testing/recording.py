"""Recordings of tests: one recorded request, a sequence of them with filters and counts, and a running recording."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import orjson

from kubist.api.request import RequestInfo
from kubist.base import files
from kubist.model.meta.object import Object
from kubist.testbench.faults.matching import ResourcePattern
from kubist.testing.errors import Refused

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster
import datetime

from kubist.testbench.recording.object_diff import diff_lines

WRITES = ("create", "update", "patch", "delete", "deletecollection")
READS = ("get", "list", "watch")


class RecordedRequest:
    """A request of a client and its response. `line` has everything, as the recording's line of JSON."""

    def __init__(self, line: Object) -> None:
        self.line = line

    def __repr__(self) -> str:
        line = self.line
        parts = [self.verb, self.target]
        if line.get("query"):
            parts.append(f"?{line['query']}")
        by = self.user or "nobody"
        if self.user_agent:
            by += f" ({self.user_agent})"
        return f"<{' '.join(parts)} -> {self.result}, by {by}>"

    @property
    def result(self) -> str:
        """Outcome in words, such as `409 Conflict, injected by fault rule 1`."""
        result = f"{self.status} {self.reason}".strip() if self.status else "connection closed"
        if self.is_open:
            result += ", open"
        if self.faults:
            result += f", injected by fault rule {' and '.join(fault['id'] for fault in self.faults)}"
        return result

    @property
    def target(self) -> str:
        """Resource and object, such as `deployments.apps/status default/web`; the path of other requests."""
        line = self.line
        if not self.resource:
            return str(line["path"])
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        if self.subresource:
            kind += f"/{self.subresource}"
        names = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{kind} {names}" if names else kind

    @property
    def time(self) -> datetime.datetime:
        """Start of the request, by the clock of the cluster."""
        return datetime.datetime.fromisoformat(self.line["time"])

    @property
    def duration(self) -> float:
        """Seconds until the response, or until the end of a watch."""
        return float(self.line["duration"])

    @property
    def user(self) -> str:
        return self._text("user")

    @property
    def groups(self) -> list[str]:
        return list(self.line.get("groups", ()))

    @property
    def user_agent(self) -> str:
        return self._text("userAgent")

    @property
    def verb(self) -> str:
        return self._text("verb")

    @property
    def method(self) -> str:
        return self._text("method")

    @property
    def path(self) -> str:
        return self._text("path")

    @property
    def query(self) -> str:
        return self._text("query")

    @property
    def group(self) -> str:
        return self._text("group")

    @property
    def resource(self) -> str:
        return self._text("resource")

    @property
    def subresource(self) -> str:
        return self._text("subresource")

    @property
    def namespace(self) -> str:
        return self._text("namespace")

    @property
    def name(self) -> str:
        """Name of the object, also of one that was created with a generated name."""
        return self._text("name")

    @property
    def body(self) -> Any:
        """Object in the request; None for a patch and if there is none."""
        return self.line.get("requestObject")

    @property
    def patch(self) -> Any:
        """Patch, or configuration of an apply. `patch_type` is its content type."""
        return self.line.get("patch")

    @property
    def patch_type(self) -> str:
        return self._text("patchType")

    @property
    def status(self) -> int:
        """HTTP status. 0 if the connection ended without a response."""
        return int(self.line.get("status", 0))

    @property
    def reason(self) -> str:
        """Reason of the Status, such as `Conflict`; empty for a success."""
        return self._text("reason")

    @property
    def response(self) -> Any:
        """Object, list or Status of the response."""
        return self.line.get("responseObject")

    @property
    def before(self) -> Object | None:
        """Stored object before the write; None if there was none or nothing changed."""
        return self.line.get("before")

    @property
    def after(self) -> Object | None:
        """Stored object after the write; None if it was deleted or nothing changed."""
        return self.line.get("after")

    @property
    def faults(self) -> list[Object]:
        """Fault rules that acted on the request, each with its `id` and actions: `[{"id": "1", "status": 409}]`."""
        return list(self.line.get("faults", ()))

    @property
    def is_open(self) -> bool:
        """Whether the watch has not ended."""
        return bool(self.line.get("open"))

    @property
    def events(self) -> int:
        """Number of events that a watch was sent."""
        return int(self.line.get("events", 0))

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES and bool(self.resource)

    @property
    def is_read(self) -> bool:
        return self.verb in READS and bool(self.resource)

    def diff(self) -> str:
        """Change that the write made, a line for each field. Empty if nothing changed."""
        if "deleted" in self.line:
            return "\n".join(f"- {name}" for name in self.line["deleted"])
        return "\n".join(diff_lines(self.before, self.after))

    def _text(self, name: str) -> str:
        return str(self.line.get(name, ""))


# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Texts = str | Sequence[str]
"""One value, or several of which one must match. `*` matches any characters."""
Codes = int | Container[int]
"""One HTTP status, or several: `[409, 410]`, `range(400, 500)`."""
SHOWN = 20
"""Maximum number of requests in a repr."""
Test = Callable[[RecordedRequest], bool]


class Requests(Sequence[RecordedRequest]):
    """Recorded requests, in the order of their responses. A filter returns those that were recorded so far.

    requests.writes(to="deployments").by(user="system:serviceaccount:*")
    """

    def __init__(self, requests: Sequence[RecordedRequest], dropped: int = 0) -> None:
        self._requests = requests
        self._dropped = dropped

    def _read(self) -> Sequence[RecordedRequest]:
        return self._requests

    @property
    def dropped(self) -> int:
        """Number of requests that did not fit into the limits of the recording."""
        return self._dropped

    @overload
    def __getitem__(self, index: int) -> RecordedRequest: ...

    @overload
    def __getitem__(self, index: slice) -> Requests: ...

    def __getitem__(self, index: int | slice) -> RecordedRequest | Requests:
        requests = self._read()
        return Requests(requests[index], self._dropped) if isinstance(index, slice) else requests[index]

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[RecordedRequest]:
        return iter(list(self._read()))

    def __repr__(self) -> str:
        requests = self._read()
        lines = [repr(request) for request in requests[:SHOWN]]
        if len(requests) > SHOWN:
            lines.append(f"… and {len(requests) - SHOWN} more")
        if self._dropped:
            lines.append(f"{self._dropped} more were dropped, because the recording was full")
        rows = "".join(f"\n  {line}" for line in lines)
        return f"<{len(requests)} requests>" if not rows else f"<{len(requests)} requests:{rows}>"

    # Filters

    def where(
        self,
        *,
        verb: Texts | None = None,
        resource: Texts | None = None,
        namespace: Texts | None = None,
        name: Texts | None = None,
        status: Codes | None = None,
        user: Texts | None = None,
        agent: Texts | None = None,
    ) -> Requests:
        """Requests that match all criteria. `resource` is like `deployments`, `deployments.apps`, `pods/status` or
        `*`; `agent` is the start of the User-Agent; `status` may be `range(400, 500)`."""
        tests: list[Test] = []
        for attribute, patterns in (("verb", verb), ("namespace", namespace), ("name", name), ("user", user)):
            if patterns is not None:
                tests.append(_text_test(attribute, patterns))
        if resource is not None:
            tests.append(_resource_test(resource))
        if agent is not None:
            prefixes = tuple(_several(agent))
            tests.append(lambda request: request.user_agent.startswith(prefixes))
        if status is not None:
            codes: Container[int] = (status,) if isinstance(status, int) else status
            tests.append(lambda request: request.status in codes)
        return self._matching(lambda request: all(test(request) for test in tests))

    def by(self, *, user: Texts | None = None, agent: Texts | None = None) -> Requests:
        """Requests of a user, or of clients whose User-Agent starts with `agent`."""
        return self.where(user=user, agent=agent)

    def writes(self, to: Texts | None = None, **criteria: Any) -> Requests:
        """Creates, updates, patches and deletes, of one or all resources. `criteria` are those of `where`."""
        return self._matching(lambda request: request.is_write).where(resource=to, **criteria)

    def reads(self, of: Texts | None = None, **criteria: Any) -> Requests:
        """Gets, lists and watches, of one or all resources. `criteria` are those of `where`."""
        return self._matching(lambda request: request.is_read).where(resource=of, **criteria)

    def failed(self) -> Requests:
        """Requests with an error or without a response."""
        return self._matching(lambda request: not 0 < request.status < 400)

    def count(self, value: Any = None, **criteria: Any) -> int:
        """Number of requests that match: `requests.count(verb="update", resource="deployments")`."""
        if value is not None:
            return list(self).count(value)
        return len(self.where(**criteria))

    def _matching(self, test: Test) -> Requests:
        return Requests([request for request in self if test(request)], self._dropped)

    # Files

    def diff(self) -> str:
        """Changes of all writes, each with its request."""
        parts = [
            f"{request.verb} {request.target}\n" + "".join(f"  {line}\n" for line in text.splitlines())
            for request in self
            if (text := request.diff())
        ]
        return "".join(parts)

    def save(self, path: str | Path) -> None:
        """Writes the requests to a file, as lines of JSON that `replay` reads."""
        lines: list[Object] = [request.line for request in self]
        if self._dropped:
            lines.append({"dropped": self._dropped, "reason": "the recording was full"})
        files.write(Path(path), b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def match_golden(self, path: str | Path, *, responses: bool = False) -> None:
        """Compares the requests with a file, and fails with a diff. A relative path is relative to the caller's file.

        Values that differ from run to run are replaced: uids, resource versions, times, generated names, IP
        addresses, ports and tokens. `pytest --kubist-update-golden` writes the file. `responses` adds the objects
        of the responses.
        """
        # Saves start-up time: few tests have golden files.
        from kubist.testing import golden

        caller = sys._getframe(1).f_globals.get("__file__")
        where = Path(caller).parent if caller else Path()
        if self.dropped:
            raise AssertionError(
                f"the recording dropped {self.dropped} requests; set max_entries or max_bytes of cluster.recording()"
            )
        golden.match(where / path, [request.line for request in self], responses=responses)


def _several(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _text_test(attribute: str, patterns: Texts) -> Test:
    globs = _several(patterns)
    return lambda request: any(fnmatchcase(getattr(request, attribute), pattern) for pattern in globs)


def _resource_test(resources: Texts) -> Test:
    patterns = []
    for text in _several(resources):
        try:
            patterns.append(ResourcePattern.parse(text))
        except ValueError as error:
            raise ValueError(f"resource {text!r} {error}") from None
    return lambda request: any(pattern.matches(_info(request)) for pattern in patterns)


def _info(request: RecordedRequest) -> RequestInfo:
    return RequestInfo(
        request.path,
        request.verb,
        is_resource=bool(request.resource),
        group=request.group,
        resource=request.resource,
        subresource=request.subresource,
    )


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
            return self._requests
        after = max(self._lines, default=0)
        after = min([after, *(id_ - 1 for id_, line in self._lines.items() if line.get("open"))])
        try:
            lines: list[Object] = self._cluster.request("GET", f"{PATH}/{self.id}?after={after}")
        except Refused as error:  # another client ended it
            if error.code != 404:
                raise
            self._runs = False
            return self._requests
        for line in lines:
            if "id" in line:
                self._lines[line["id"]] = line
            else:
                self._dropped = int(line["dropped"])
        self._requests = [RecordedRequest(self._lines[id_]) for id_ in sorted(self._lines)]
        return self._requests


def spec_of(criteria: dict[str, Any]) -> Object:
    """JSON of the arguments of `cluster.recording`."""
    names = {"agent": "userAgent", "max_entries": "maxEntries", "max_bytes": "maxBytes"}
    return {
        names.get(name, name): list(value) if isinstance(value, (tuple, set, frozenset)) else value
        for name, value in criteria.items()
        if value is not None
    }
