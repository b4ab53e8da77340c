"""Audit log: lines of JSON (audit.k8s.io/v1 Event), written by a separate thread."""

from __future__ import annotations

import logging
import queue
import sys
import threading
from pathlib import Path
from typing import Any, Protocol

import orjson

from kubist.api.filters.audit.file import AuditFile
from kubist.api.filters.audit.policy import LEVELS, AuditPolicy, Verdict
from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.resources.context import User
from kubist.base.http.messages import Answer, Request, Response, Stream
from kubist.model.codec.any_body import read_body
from kubist.model.meta.object import Object
from kubist.model.meta.times import now_micro

log = logging.getLogger("kubist.filters")

REQUEST, RESPONSE = 2, 3
BUFFERED = 10_000
"""Maximum number of events that wait for the disk. Further events are dropped and the server logs an error."""
AT_ONCE = 64 << 10
"""Size in bytes of the waiting lines at which they are written."""
USER_AGENT_LIMIT = 1024

_REFERENCE = ("namespace", "name", "uid", "resourceVersion")


class Sink(Protocol):
    """Destination of audit events."""

    def put(self, event: Object) -> None:
        """Takes an event without waiting."""
        ...

    def close(self) -> None:
        """Delivers the waiting events. It is called from a thread other than the event loop's."""
        ...


class AuditLog:
    """Writes events to a file, or to standard output for `-`. Writing never delays a request."""

    def __init__(
        self, path: str, max_size: int = 100, max_backup: int = 0, max_age: int = 0, *, compress: bool = False
    ) -> None:
        self._file: AuditFile | None = None
        if path != "-":
            self._file = AuditFile(Path(path), max_size << 20, max_backup, max_age, compress=compress)
        self._events: queue.Queue[Object | None] = queue.Queue(BUFFERED)
        self._dropped = 0
        self._over = False
        self._thread = threading.Thread(target=self._write, name="audit", daemon=True)
        self._thread.start()

    def put(self, event: Object) -> None:
        try:
            self._events.put_nowait(event)
        except queue.Full:
            if not self._dropped:
                log.error("the audit log cannot keep up: events are dropped")
            self._dropped += 1

    def close(self) -> None:
        """Writes the waiting events, then stops the thread."""
        self._events.put(None)
        self._thread.join()
        if self._dropped:
            log.error("%d audit events were dropped", self._dropped)

    def _write(self) -> None:
        while lines := self._next_lines():
            try:
                self._append(lines)
            except OSError as error:
                log.error("the audit log cannot be written, events are lost: %s", error)
        if self._file is not None:
            self._file.close()

    def _append(self, lines: bytes) -> None:
        if self._file is not None:
            self._file.write(lines)
        else:
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()

    def _next_lines(self) -> bytes:
        """Waiting events as lines, about AT_ONCE bytes at most; empty after `close`."""
        lines = bytearray()
        while not self._over and (not lines or (len(lines) < AT_ONCE and not self._events.empty())):
            event = self._events.get()
            if event is None:
                self._over = True
            else:
                lines += orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
        return bytes(lines)


class Audit:
    """Starts an audit trail for each request with a level above None."""

    def __init__(self, policy: AuditPolicy, log: Sink) -> None:
        self._policy = policy
        self.log = log

    def begin(self, request: Request, attributes: AuthorizationQuery, audit_id: str) -> Trail | None:
        verdict = self._policy.verdict(attributes)
        return Trail(self.log, verdict, request, attributes, audit_id) if verdict.level else None


def _shortened(user_agent: str) -> str:
    if len(user_agent) <= USER_AGENT_LIMIT:
        return user_agent
    return user_agent[:USER_AGENT_LIMIT] + "...TRUNCATED"


class Trail:
    """Audit event of one request, written at each stage."""

    def __init__(
        self, log: Sink, verdict: Verdict, request: Request, attributes: AuthorizationQuery, audit_id: str
    ) -> None:
        self._log = log
        self._verdict = verdict
        self._request = request
        self.annotations: dict[str, str] = {}
        self.type: Object = {}
        """kind and apiVersion for a body that does not contain them."""
        self._known = bool(attributes.user.name)
        target = f"{request.path}?{request.query}" if request.query else request.path
        self._event: Object = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": LEVELS[verdict.level],
            "auditID": audit_id,
            "stage": "",
            "requestURI": target,
            "verb": attributes.verb,
            "user": attributes.user.info() if self._known else {},
            "sourceIPs": _sources(request),
            "userAgent": _shortened(request.headers.get("user-agent", "")),
            "requestReceivedTimestamp": now_micro(),
        }
        if attributes.is_resource:
            self._event["objectRef"] = _object_ref(attributes)
        if self._known:
            self._stage("RequestReceived")

    def impersonated(self, user: User, constraint: str) -> None:
        self._event["impersonatedUser"] = user.info()
        if constraint:
            self._event["authenticationMetadata"] = {"impersonationConstraint": constraint}

    def decided(self, allowed: bool, reason: str) -> None:
        self.annotations["authorization.k8s.io/decision"] = "allow" if allowed else "forbid"
        self.annotations["authorization.k8s.io/reason"] = reason

    def undecided(self) -> None:
        """Records that authorization failed without a decision."""
        self.annotations["authorization.k8s.io/reason"] = "internal error"

    def answered(self, answer: Answer) -> None:
        """Completes the event: now, or when the stream ends."""
        if not isinstance(answer, Stream):
            self._complete(answer)
            return
        self._event["responseStatus"] = {"metadata": {}, "code": answer.status}
        self._stage("ResponseStarted")
        stopped = answer.stopped

        def ended() -> None:
            self._complete(None)
            stopped()

        answer.stopped = ended

    def _complete(self, response: Response | None) -> None:
        if response is not None:
            self._received(response)
        if self._request.body and self._known:
            self._sent(self._request)
        self._stage("ResponseComplete" if self._known else "ResponseStarted")

    def _sent(self, request: Request) -> None:
        """Records the request body: an object, which also completes objectRef, or a patch."""
        sent = self._object(request.body, request.headers.get("content-type", ""))
        if isinstance(sent, dict) and request.method != "PATCH":
            sent = {**(_DELETE_OPTIONS if request.method == "DELETE" else self.type), **sent}
            metadata = sent.get("metadata")
            reference = self._event.get("objectRef")
            if isinstance(metadata, dict) and reference is not None:
                identity = {name: metadata[name] for name in _REFERENCE if metadata.get(name)}
                self._event["objectRef"] = identity | reference
        if sent is not None and self._verdict.level >= REQUEST:
            self._event["requestObject"] = sent

    def _received(self, answer: Response) -> None:
        """Records the response."""
        status: Object = {"metadata": {}, "code": answer.status}
        obj = None
        if answer.status >= 400 or self._verdict.level >= RESPONSE:
            body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
            headers = dict(answer.headers)
            if b"Content-Encoding" not in headers:
                obj = self._object(body, headers.get(b"Content-Type", b"").decode())
        if isinstance(obj, dict) and obj.get("kind") == "Status":
            names = ("metadata", "status", "message", "reason", "details", "code")
            status = {name: obj[name] for name in names if name in obj} | {"code": answer.status}
        self._event["responseStatus"] = status
        if self._verdict.level >= RESPONSE and obj is not None:
            self._event["responseObject"] = obj

    def _object(self, body: bytes, content_type: str) -> Any:
        """A body as the log shows it: JSON, regardless of the encoding it was sent in."""
        value = read_body(body, content_type)
        if self._verdict.omit_managed_fields and isinstance(value, dict):
            for obj in (value, *(value.get("items") or ())):
                if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
                    obj["metadata"].pop("managedFields", None)
        return value

    def _stage(self, stage: str) -> None:
        if stage in self._verdict.omit_stages:
            return
        event = {**self._event, "stage": stage, "stageTimestamp": now_micro()}
        if self.annotations:
            event["annotations"] = dict(self.annotations)
        self._log.put(event)


_DELETE_OPTIONS: Object = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
"""Type of a delete's body that does not name its type."""


def _sources(request: Request) -> list[str]:
    forwarded = request.headers.get("x-forwarded-for", "")
    hops = [part.strip() for part in forwarded.split(",") if part.strip()]
    if not hops and request.headers.get("x-real-ip"):
        hops = [request.headers["x-real-ip"]]
    peer = request.peer[0]
    return hops if hops and hops[-1] == peer else [*hops, peer]


def _object_ref(attributes: AuthorizationQuery) -> Object:
    pairs = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": attributes.version,
        "subresource": attributes.subresource,
    }
    return {name: value for name, value in pairs.items() if value}
