"""One request of a recording."""

from __future__ import annotations

import datetime
from typing import Any

from kubist.model.meta.object import Object
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
