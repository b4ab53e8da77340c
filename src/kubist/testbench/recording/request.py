"""Recorded request: kept as it arrived, and turned into a line of JSON when a client reads it."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.resources.context import Context
from kubist.api.verbs.watch import Watcher
from kubist.base.http.messages import Request, Response
from kubist.model.codec.any_body import read_body
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.storage.cache.entry import Change
from kubist.testbench.faults.fault import acted_on
from kubist.testbench.recording.redaction import (
    hidden_fields,
    mark_changed,
    redact,
    redact_delete_options,
    redact_message,
    redact_patch,
)

MOST_BODY = 1 << 20
"""Maximum size in bytes of one object in a recording. A larger one is omitted."""
HEADER_OVERHEAD = 100
"""Approximate bytes that each header takes in addition to its name and value."""
OVERHEAD = 1000
"""Approximate bytes that a recorded request takes in addition to its objects."""


class Recorded:
    """One request of a client, and its response."""

    __slots__ = (
        *("answer", "changes", "ctx", "id", "is_open", "seconds", "size", "status", "time", "watcher"),
        *("_omitted",),
    )

    def __init__(self, ctx: Context, time: float, seconds: float, status: int) -> None:
        self.ctx = ctx
        self.time = time
        self.seconds = seconds
        self.id = 0
        """Number of the request on its server. The recorder sets it."""
        self.status = status
        """0: the connection ended without a response."""
        self.answer: Response | None = None
        """Response whose body is shown."""
        self.changes: list[Change] = []
        """Changes that this write made."""
        self.is_open = False
        """Whether its stream has not ended."""
        self.watcher: Watcher | None = None
        self.size = OVERHEAD + head_size(ctx.request) + len(ctx.request.body)
        """Approximate size in memory in bytes."""
        self._omitted: list[str] = []

    def keep(self, answer: Response | None, changes: list[Change]) -> None:
        """Keeps the response and the changes of the stored objects, unless they are too long."""
        if answer is not None:
            size = _length(answer)
            if size <= MOST_BODY:
                self.answer = answer
                self.size += size
            else:
                self._omitted.append("responseObject")
        kept = [change for change in changes if _weight(change) <= 2 * MOST_BODY]
        if len(kept) < len(changes):
            self._omitted += ["before", "after"]
        self.changes = kept
        self.size += sum(map(_weight, kept))

    @property
    def user_agent(self) -> str:
        return self.ctx.request.headers.get("user-agent", "")

    def line(self) -> bytes:
        """The request as a line of JSON."""
        return orjson.dumps(self.state(), option=orjson.OPT_APPEND_NEWLINE)

    def state(self) -> Object:
        """The request as a JSON object, without secrets."""
        ctx = self.ctx
        request, info, user = ctx.request, ctx.info, ctx.user
        state: Object = {
            "id": self.id,
            "time": times.format_micro_time(*divmod(int(self.time * 1e6), 10**6)),
            "duration": round(self.seconds, 6),
            "user": user.name,
            "groups": list(user.groups),
            "userAgent": self.user_agent,
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "verb": info.verb,
        }
        if info.is_resource:
            names = ("group", "version", "resource", "subresource", "namespace")
            state |= {name: getattr(info, name) for name in names}
            state["name"] = info.name or ctx.name
        omitted = list(self._omitted)
        is_secret = info.resource == "secrets" and not info.group
        sent = self._add_body(state, omitted, is_secret)
        self._add_response(state, sent, is_secret)
        self._add_changes(state, is_secret)
        if omitted:
            state["omitted"] = omitted
        return state

    @property
    def _has_token(self) -> bool:
        """Whether the objects of the request have a token, even if their kind is missing."""
        info = self.ctx.info
        return info.resource == "tokenreviews" or info.subresource == "token"

    def _add_body(self, state: Object, omitted: list[str], is_secret: bool) -> Any:
        """Adds the body of the request. Returns it as it was sent."""
        request = self.ctx.request
        if not request.body:
            return None
        content_type = request.headers.get("content-type", "").partition(";")[0].strip()
        is_patch = request.method == "PATCH"
        state["patchType" if is_patch else "contentType"] = content_type
        name, hide = ("patch", redact_patch) if is_patch else ("requestObject", redact)
        if len(request.body) > MOST_BODY:
            omitted.append(name)
            return None
        sent = read_body(request.body, content_type)
        if sent is None:
            omitted.append(name)
            return None
        if is_secret and request.method == "DELETE":
            body = state[name] = redact_delete_options(read_body(request.body, content_type))
            return hidden_fields(sent, body)
        body = read_body(request.body, content_type) if is_secret else sent
        state[name] = hide(body, is_secret=is_secret, has_token=self._has_token)
        return sent

    def _add_response(self, state: Object, sent: Any, is_secret: bool) -> None:
        if self.status:
            state["status"] = self.status
        else:
            state["closed"] = True
        if self.is_open:
            state["open"] = True
        if self.watcher is not None:
            state["events"] = self.watcher.sent
        if faults := acted_on(self.ctx):
            state["faults"] = faults
        obj = response_object(self.answer) if self.answer is not None else None
        if obj is None:
            return
        if obj.get("kind") == "Status" and self.status >= 400:
            state["reason"] = obj.get("reason", "")
            if is_secret and self.ctx.request.body:
                redact_message(obj, sent)
        state["responseObject"] = redact(obj, is_secret=is_secret, has_token=self._has_token)

    def _add_changes(self, state: Object, is_secret: bool) -> None:
        if self.ctx.info.verb == "deletecollection" and self.changes:
            removed = [change.old for change in self.changes if change.old is not None and change.new is None]
            state["deleted"] = [
                f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name for entry in removed
            ]
            return
        if not self.changes:
            return
        first, last = self.changes[0].old, self.changes[-1].new
        before = first.object() if first is not None else None
        after = last.object() if last is not None else None
        if is_secret and before is not None and after is not None:
            mark_changed(before, after)
        for name, value in (("before", before), ("after", after)):
            if value is not None:
                state[name] = redact(value, is_secret=is_secret)


def head_size(request: Request) -> int:
    """Approximate bytes that the request line and the headers take in memory."""
    headers = request.headers
    sizes = sum(map(len, headers)) + sum(map(len, headers.values())) + HEADER_OVERHEAD * len(headers)
    return len(request.path) + len(request.query) + sizes


def response_object(answer: Response) -> Object | None:
    """Object in the body of a response; None if it has none."""
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    content_type = next((value for name, value in answer.headers if name.lower() == b"content-type"), b"")
    obj = read_body(body, content_type.decode("latin-1")) if body else None
    return obj if isinstance(obj, dict) else None


def _length(answer: Response) -> int:
    return len(answer.body) if isinstance(answer.body, bytes) else sum(map(len, answer.body))


def _weight(change: Change) -> int:
    return sum(len(entry.tail) for entry in (change.old, change.new) if entry is not None)
