"""Mapping of a replay: uids, generated names, resource versions and continue tokens of the recorded cluster, and those
of the new one."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from kubist.model.meta.object import Object
from kubist.testbench.recording.redaction import CHANGED, DATA, REDACTED

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
            found = left.pop((self.text(namespace), self.text(name)), None)
            if found is not None:
                self.learn(item, found)
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
            text = _UID.sub(lambda found: self._uids.get(found[0], found[0]), text)
        if self._names:
            text = _WORD.sub(lambda found: self._names.get(found[0], found[0]), text)
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


def fill_redacted(body: Any) -> Any:
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
