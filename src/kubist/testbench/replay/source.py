"""Sources of a replay: lines of a recording, or of an audit log (audit.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from kubist.model.meta.object import Object

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
AUDIT_METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "head": "HEAD",
    "options": "OPTIONS",
    "post": "POST",
    "put": "PUT",
}
AUDIT_GROUP = "audit.k8s.io/"
WITH_BODIES = ("Request", "RequestResponse")
"""Audit levels whose events have the body of the request."""
CONNECTED = ("attach", "exec", "log", "portforward", "proxy")
"""Subresources that need a kubelet or another server."""
REJECTED = (401, 403)
MADE_RESPONSES = ("status", "staleRead", "expireHistory")
"""Actions of fault rules that make the response. Further, `close` before the request takes effect."""
OK, NOT_MODIFIED = 200, 304
MOST_MALFORMED = 100
"""Maximum number of malformed lines that are reported."""
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(slots=True)
class Step:
    """One request to send."""

    line: int
    method: str
    path: str
    query: str
    status: int
    """Recorded status; 0 if the connection ended without a response."""
    body: Any = None
    content_type: str = "application/json"
    user: str = ""
    groups: list[str] = field(default_factory=list)
    response: Object | None = None
    """Recorded object of the response."""
    skip: str = ""
    """Reason why it is not sent."""

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


class MalformedRecording(ValueError):
    """Lines of a recording or audit log that cannot be read. Nothing was sent."""

    def __init__(self, source: str, problems: list[tuple[int, str]]) -> None:
        self.problems = problems
        """Number of each line, and what is wrong with it."""
        super().__init__("\n".join(f"{source}:{number}: {why}" for number, why in problems))


def check_lines(lines: Iterable[bytes | str], source: str) -> int:
    """Number of requests. Raises MalformedRecording."""
    problems: list[tuple[int, str]] = []
    count = 0
    for number, line in enumerate(lines, 1):
        try:
            count += read_line(line, number, impersonate=False) is not None
        except ValueError as error:
            problems.append((number, str(error)))
            if len(problems) >= MOST_MALFORMED:
                break
    if problems:
        raise MalformedRecording(source, problems)
    return count


def read_steps(lines: Iterable[bytes | str], *, impersonate: bool) -> Iterator[Step]:
    """Requests in order. The lines must have been checked."""
    for number, line in enumerate(lines, 1):
        step = read_line(line, number, impersonate=impersonate)
        if step is not None:
            yield step


def read_line(line: bytes | str, number: int, *, impersonate: bool) -> Step | None:
    """Request of a line; None if it has none. ValueError if it is malformed."""
    if not line.strip():
        return None
    try:
        entry = orjson.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(entry, dict):
        raise ValueError("must be a JSON object")
    version = entry.get("apiVersion")
    if isinstance(version, str) and version.startswith(AUDIT_GROUP):
        step = _audit_step(entry, number)
    elif "dropped" in entry and "method" not in entry:
        return None
    else:
        step = _recorded_step(entry, number)
    if step is not None and step.status == NOT_MODIFIED:
        step.status = OK  # the header If-None-Match is not recorded
    if step is not None and not step.skip:
        step.skip = _reason_to_skip(step, impersonate)
    return step


def _typed(obj: Object, name: str, kind: type, called: str, default: Any) -> Any:
    value = obj.get(name, default)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise ValueError(f"{name}: must be {called}")
    return value


def _text(obj: Object, name: str, default: str = "") -> str:
    return str(_typed(obj, name, str, "a string", default))


def _recorded_step(entry: Object, number: int) -> Step:
    for name in ("method", "path"):
        if name not in entry:
            raise ValueError(f"{name}: is missing; this is no line of a recording or audit log")
    method, path = _text(entry, "method"), _text(entry, "path")
    if method not in METHODS:
        raise ValueError(f"method: must be one of {', '.join(METHODS)}")
    _check_path(path, "path")
    omitted = _typed(entry, "omitted", list, "a list", [])
    is_patch = method == "PATCH"
    step = Step(
        number,
        method,
        path,
        _text(entry, "query"),
        _typed(entry, "status", int, "a whole number", 0),
        body=entry.get("patch" if is_patch else "requestObject"),
        content_type=_text(entry, "patchType" if is_patch else "contentType", "application/json"),
        user=_text(entry, "user"),
        groups=_groups(entry),
    )
    # The response may be a Table; the stored object is not.
    for name in ("responseObject", "after"):
        if isinstance(entry.get(name), dict):
            step.response = entry[name]
    if "patch" in omitted or "requestObject" in omitted:
        step.skip = "the recording omitted its body"
    elif any(map(_made_response, _typed(entry, "faults", list, "a list", []))):
        step.skip = "a fault rule made its response"
    elif entry.get("closed") and "after" not in entry and "before" not in entry:
        step.skip = "its connection was closed before it took effect"
    return step


def _made_response(fault: Any) -> bool:
    """Whether a fault rule made the response of a request, which another server cannot give."""
    if not isinstance(fault, dict):
        raise ValueError("faults: must be a list of objects")
    return fault.get("close") == "before" or any(action in fault for action in MADE_RESPONSES)


def _groups(obj: Object) -> list[str]:
    groups = _typed(obj, "groups", list, "a list of strings", [])
    if not all(isinstance(group, str) for group in groups):
        raise ValueError("groups: must be a list of strings")
    return list(groups)


def _check_path(path: str, name: str) -> None:
    if not path.startswith("/") or any(char <= " " or char == "\x7f" for char in path):
        raise ValueError(f"{name}: must start with / and have no blanks")


def _audit_step(entry: Object, number: int) -> Step | None:
    if entry.get("kind") != "Event":
        raise ValueError("kind: must be Event; write one event a line")
    stage = _text(entry, "stage")
    if stage not in ("ResponseComplete", "Panic", "RequestReceived", "ResponseStarted"):
        raise ValueError("stage: must be RequestReceived, ResponseStarted, ResponseComplete or Panic")
    verb, uri, level = _text(entry, "verb"), _text(entry, "requestURI"), _text(entry, "level")
    _check_path(uri, "requestURI")
    if stage != "ResponseComplete":
        return None
    path, _, query = uri.partition("?")
    user = entry.get("impersonatedUser") or _typed(entry, "user", dict, "an object", {})
    status = _typed(entry, "responseStatus", dict, "an object", {})
    step = Step(
        number,
        AUDIT_METHODS.get(verb, "GET"),
        path,
        query,
        _typed(status, "code", int, "a whole number", 0),
        body=entry.get("requestObject"),
        user=_text(user, "username"),
        groups=_groups(user),
        response=entry.get("responseObject") if isinstance(entry.get("responseObject"), dict) else None,
    )
    if verb not in AUDIT_METHODS:
        step.skip = f'the verb "{verb}" is unknown'
    elif level not in WITH_BODIES:
        step.skip = f"audit level {level or 'None'} has no bodies"
    elif step.body is None and step.method in ("POST", "PUT", "PATCH"):
        step.skip = "the event has no requestObject"
    if step.method == "DELETE" and isinstance(step.body, dict):
        # kube-apiserver logs versions that no client sends, such as meta.k8s.io/__internal.
        step.body = {**step.body, "kind": "DeleteOptions", "apiVersion": "v1"}
    if step.method == "PATCH":
        step.content_type = _patch_type(step.body, path, query)
    return step


def _patch_type(patch: Any, path: str, query: str) -> str:
    """Type of a patch, which audit events do not have: by its form."""
    if isinstance(patch, list):
        return JSON_PATCH
    is_whole = isinstance(patch, dict) and "kind" in patch and "apiVersion" in patch
    if is_whole and "fieldManager=" in query:
        return APPLY_PATCH
    parts = path.split("/")
    group = parts[2] if len(parts) > 2 and parts[1] == "apis" else ""
    is_built_in = "." not in group or group.endswith(".k8s.io")
    return STRATEGIC_PATCH if is_built_in else MERGE_PATCH


def _reason_to_skip(step: Step, impersonate: bool) -> str:
    options = step.query.split("&")
    parts = step.path.strip("/").split("/")
    if "watch=1" in options or "watch=true" in options or (len(parts) > 2 and "watch" in parts[2:4]):
        return "watches are not replayed"
    if any(part in CONNECTED for part in parts[5:]):
        return "it needs a kubelet or another server"
    if step.path.startswith("/kubist/"):
        return "the control API is not replayed"
    if step.status in REJECTED and not impersonate:
        return f"the recorded user was rejected ({step.status}); impersonate to compare it"
    return ""
