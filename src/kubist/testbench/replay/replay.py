"""Replay: sends the requests of a recording or audit log to another server, in order, and compares the statuses."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode

import orjson

from kubist.model.meta.object import Object
from kubist.testbench.recording.redaction import CHANGED, DATA, REDACTED
from kubist.testbench.replay.source import Step, read_steps

PATIENCE = 2.0
"""Seconds for which a request with a different status is repeated, because control loops may not have finished."""
PATIENCE_IN_ALL = 20.0
"""Seconds that all requests together may be repeated."""
PAUSE = 0.02
MOST_SHOWN = 1000
"""Maximum number of differences and skipped requests in a report."""
AUTHENTICATED = "system:authenticated"
Headers = list[tuple[str, str]]


class Connection(Protocol):
    """Connection to the new server."""

    def send(self, method: str, target: str, body: bytes | None, headers: Headers) -> tuple[int, Object]:
        """Status and object of the response; an empty object if it has none."""
        ...


@dataclass(slots=True)
class Difference:
    """A request whose status differs from the recorded one."""

    line: int
    request: str
    recorded: int
    status: int
    message: str

    def __str__(self) -> str:
        why = f": {self.message}" if self.message else ""
        return f"line {self.line}: {self.request}: recorded {self.recorded}, now {self.status}{why}"


@dataclass(slots=True)
class Skip:
    """A request that was not sent."""

    line: int
    request: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.request}: {self.reason}"


@dataclass
class Report:
    """Result of a replay."""

    sent: int = 0
    differing: int = 0
    skipped: int = 0
    differences: list[Difference] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether every request that was sent has its recorded status."""
        return not self.differing

    def __str__(self) -> str:
        summary = f"{self.sent} requests sent, {self.differing} differ, {self.skipped} skipped"
        return "\n".join([summary, *(f"  {difference}" for difference in self.differences)])

    def reasons(self) -> dict[str, int]:
        """Reasons of the skipped requests, with the number of requests."""
        counts: dict[str, int] = {}
        for skip in self.skips:
            counts[skip.reason] = counts.get(skip.reason, 0) + 1
        return counts

    def state(self) -> Object:
        """The report as JSON."""
        return {
            "sent": self.sent,
            "differing": self.differing,
            "skipped": self.skipped,
            "differences": [
                {name: getattr(item, name) for name in ("line", "request", "recorded", "status", "message")}
                for item in self.differences
            ],
            "skips": [
                {"line": item.line, "request": item.request, "reason": item.reason} for item in self.skips
            ],
        }


def replay_lines(
    connection: Connection,
    lines: Iterable[bytes | str],
    *,
    impersonate: bool = False,
    patience: float = PATIENCE,
) -> Report:
    """Sends the requests of checked lines."""
    player = Player(connection, impersonate, patience)
    for step in read_steps(lines, impersonate=impersonate):
        player.play(step)
    return player.report


class Player:
    """Sends requests one after the other, with the names, uids and versions of the new server."""

    def __init__(self, connection: Connection, impersonate: bool, patience: float) -> None:
        self._connection = connection
        self._impersonate = impersonate
        self._patience = patience
        self._left = PATIENCE_IN_ALL
        self._mapping = Mapping()
        self.report = Report()

    def play(self, step: Step) -> None:
        report = self.report
        if step.skip:
            report.skipped += 1
            if len(report.skips) < MOST_SHOWN:
                report.skips.append(Skip(step.line, str(step), step.skip))
            return
        status, answer = self._send(step, refresh=False)
        began = time.perf_counter()
        while self._may_repeat(step, status) and time.perf_counter() - began < min(
            self._patience, self._left
        ):
            time.sleep(PAUSE)
            status, answer = self._send(step, refresh=True)
        self._left -= time.perf_counter() - began
        report.sent += 1
        self._mapping.learn(step.response, answer)
        if step.status and status != step.status:
            report.differing += 1
            if len(report.differences) < MOST_SHOWN:
                message = str(answer.get("message", "")) if answer.get("kind") == "Status" else ""
                report.differences.append(Difference(step.line, str(step), step.status, status, message))

    @staticmethod
    def _may_repeat(step: Step, status: int) -> bool:
        """Whether another try may give the recorded status: a read, or a write without effect that succeeded."""
        if not step.status or status == step.status:
            return False
        return step.method in ("GET", "HEAD") or (status >= 400 and step.status < 400)

    def _send(self, step: Step, *, refresh: bool) -> tuple[int, Object]:
        """`refresh`: uses the newest version of the object, because control loops may have written it."""
        path = self._mapping.text(step.path)
        target = f"{path}?{self._mapping.query(step.query)}" if step.query else path
        headers: Headers = [("User-Agent", "kubist-replay")]
        body = None
        if step.body is not None:
            value = _fill_redacted(self._mapping.body(step.body))
            if step.status < 400:
                self._set_version(step, path, value, refresh)
            body = orjson.dumps(value)
            is_patch = step.method == "PATCH"
            headers.append(("Content-Type", step.content_type if is_patch else "application/json"))
        if self._impersonate and step.user:
            headers.append(("Impersonate-User", step.user))
            headers += [("Impersonate-Group", group) for group in step.groups if group != AUTHENTICATED]
        return self._connection.send(step.method, target, body, headers)

    def _set_version(self, step: Step, path: str, value: Any, refresh: bool) -> None:
        """Sets the newest resource version and uid if the recorded ones were the newest, but are unknown here."""
        if step.method not in ("PUT", "PATCH") or not isinstance(step.body, dict):
            return
        recorded = step.body.get("metadata")
        version = recorded.get("resourceVersion") if isinstance(recorded, dict) else None
        if not version or (self._mapping.knows_version(version) and not refresh):
            return
        status, current = self._connection.send("GET", _object_path(path), None, [])
        if status == 200 and isinstance(current.get("metadata"), dict):
            value["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            if "uid" in value["metadata"]:
                value["metadata"]["uid"] = current["metadata"]["uid"]


def _object_path(path: str) -> str:
    """Path of the object of a subresource: `…/deployments/web/scale` is about `…/deployments/web`."""
    parts = path.strip("/").split("/")
    below = 2 if parts[0] == "api" else 3
    namespaced = len(parts) > below + 2 and parts[below] == "namespaces"
    return "/" + "/".join(parts[: below + (4 if namespaced else 2)])


_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WORD = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
STAND_INS = {".dockerconfigjson": '{"auths":{}}', ".dockercfg": "{}"}
"""Data that is sent for redacted keys of Secrets whose form the server checks."""


class Mapping:
    """Values of the new cluster for those of the recorded one."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._continues: dict[str, str] = {}

    def learn(self, recorded: Any, new: Any) -> None:
        """Compares a recorded response with that of the new cluster: an object, a list or a Status."""
        if not isinstance(recorded, dict) or not isinstance(new, dict):
            return
        if isinstance(recorded.get("items"), list) and isinstance(new.get("items"), list):
            self._learn_items(recorded["items"], new["items"])
        old, fresh = recorded.get("metadata"), new.get("metadata")
        if isinstance(old, dict) and isinstance(fresh, dict):
            self._learn_metadata(old, fresh)

    def _learn_metadata(self, old: Object, fresh: Object) -> None:
        for name, known in (
            ("uid", self._uids),
            ("resourceVersion", self._versions),
            ("continue", self._continues),
        ):
            if isinstance(old.get(name), str) and isinstance(fresh.get(name), str) and old[name]:
                known[old[name]] = fresh[name]
        if (
            old.get("generateName")
            and isinstance(old.get("name"), str)
            and isinstance(fresh.get("name"), str)
        ):
            self._names[old["name"]] = fresh["name"]

    def _learn_items(self, recorded: list[Any], new: list[Any]) -> None:
        """Pairs the items of two lists by name, and those with new generated names by their order."""
        left: dict[tuple[str, str], Object] = {}
        for item in new:
            if isinstance(item, dict) and isinstance(item.get("metadata"), dict):
                left[_identity(item)] = item
        unknown = []
        for item in recorded:
            if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
                continue
            namespace, name = _identity(item)
            match = left.pop((self.text(namespace), self.text(name)), None)
            if match is not None:
                self.learn(item, match)
            elif item["metadata"].get("generateName"):
                unknown.append(item)
        generated: dict[tuple[str, str], list[Object]] = {}
        for item in left.values():
            generated.setdefault(_origin(item), []).append(item)
        for item in unknown:
            namespace, prefix = _origin(item)
            candidates = generated.get((self.text(namespace), self._prefix(prefix)))
            if candidates:
                self.learn(item, candidates.pop(0))

    def _prefix(self, prefix: str) -> str:
        """generateName in the new cluster: `web-x7k2p-` after the ReplicaSet got another name."""
        return f"{self.text(prefix[:-1])}-" if prefix.endswith("-") else self.text(prefix)

    def text(self, text: str) -> str:
        """A text with the uids and names of the new cluster."""
        if self._uids:
            text = _UID.sub(lambda match: self._uids.get(match[0], match[0]), text)
        if self._names:
            text = _WORD.sub(lambda match: self._names.get(match[0], match[0]), text)
        return text

    def body(self, value: Any, field: str = "") -> Any:
        """A body with the values of the new cluster."""
        if isinstance(value, dict):
            changed = {key: self.body(item, key) for key, item in value.items()}
            if str(value.get("path", "")).endswith("/resourceVersion") and "value" in value:
                changed["value"] = self.version(str(value["value"]))
            return changed
        if isinstance(value, list):
            return [self.body(item) for item in value]
        if not isinstance(value, str):
            return value
        return self.version(value) if field == "resourceVersion" else self.text(value)

    def version(self, version: str) -> str:
        return self._versions.get(version, version)

    def knows_version(self, version: str) -> bool:
        return version in self._versions

    def query(self, query: str) -> str:
        """A query with the values of the new cluster. Resource versions that it does not have are left out."""
        pairs = parse_qsl(query, keep_blank_values=True)
        unknown = any(
            name == "resourceVersion" and value not in ("", "0") and value not in self._versions
            for name, value in pairs
        )
        kept = []
        for name, value in pairs:
            if unknown and name in ("resourceVersion", "resourceVersionMatch"):
                continue
            if name == "resourceVersion":
                value = self.version(value)
            elif name == "continue":
                value = self._continues.get(value, value)
            else:
                value = self.text(value)
            kept.append((name, value))
        return urlencode(kept, quote_via=quote)


def _fill_redacted(body: Any) -> Any:
    """Gives the redacted data of a Secret a valid value."""
    if isinstance(body, dict):
        for field in DATA:
            data = body.get(field)
            if isinstance(data, dict):
                body[field] = {key: _stand_in(field, key, value) for key, value in data.items()}
    return body


def _stand_in(field: str, key: str, value: Any) -> Any:
    if value not in (REDACTED, CHANGED):
        return value
    text = STAND_INS.get(key, "redacted")
    return base64.b64encode(text.encode()).decode() if field == "data" else text


def _identity(item: Object) -> tuple[str, str]:
    return str(item["metadata"].get("namespace", "")), str(item["metadata"].get("name", ""))


def _origin(item: Object) -> tuple[str, str]:
    return str(item["metadata"].get("namespace", "")), str(item["metadata"].get("generateName", ""))
