"""Redaction: replaces the data of Secrets, and tokens, in recorded objects. Headers are never recorded."""

from __future__ import annotations

from typing import Any

from kubist.meta.object import Object

REDACTED = "<redacted>"
CHANGED = "<redacted, changed>"
"""Value of a Secret that differs from the one before the write."""
DATA = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TOKENS = {"TokenRequest": "status", "TokenReview": "spec"}
"""Kinds with a token, and the field that has it."""
_OPEN_PATHS = ("/metadata/", "/type", "/immutable")
"""Paths of a Secret whose values a JSON patch may show."""
SHORTEST = 4
"""Characters of the shortest value that is searched for in messages."""


def redact(value: Any, *, is_secret: bool) -> Any:
    """Redacts an object, or a list or Table of objects, in place. `is_secret`: objects without a kind are Secrets."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    if kind in TOKENS:
        _redact_token(value.get(TOKENS[kind]))
        return value
    is_secret = is_secret or kind in ("Secret", "SecretList")
    for item in _list(value, "items"):
        redact(item, is_secret=is_secret)
    for row in _list(value, "rows"):
        if isinstance(row, dict):
            redact(row.get("object"), is_secret=is_secret)
    if is_secret and kind != "Status":
        _redact_secret(value)
    return value


def redact_patch(patch: Any, *, is_secret: bool) -> Any:
    """Redacts a patch in place: a list is a JSON patch."""
    if not isinstance(patch, list):
        return redact(patch, is_secret=is_secret)
    if is_secret:
        for operation in patch:
            if isinstance(operation, dict) and "value" in operation:
                operation["value"] = _patch_value(str(operation.get("path", "")), operation["value"])
    return patch


def redact_message(status: Any, sent: Any) -> Any:
    """Removes the values of a Secret that was sent from the message of a Status."""
    if isinstance(status, dict) and isinstance(status.get("message"), str):
        texts = {text for text in _texts(sent) if len(text) >= SHORTEST}
        message = status["message"]
        if any(text in message for text in texts):
            status["message"] = REDACTED
            for cause in _list(status.get("details") or {}, "causes"):
                cause["message"] = REDACTED
    return status


def mark_changed(before: Object, after: Object) -> None:
    """Redacts a Secret before and after a write. Values that changed are marked."""
    for name in DATA:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            for key, value in new.items():
                new[key] = REDACTED if old.get(key, value) == value else CHANGED
    _redact_secret(before)
    _redact_secret(after)


def _redact_secret(secret: Object) -> None:
    for name in DATA:
        if name in secret:
            secret[name] = _hidden(secret[name])
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = REDACTED


def _hidden(value: Any) -> Any:
    """The same shape without the values."""
    if isinstance(value, dict):
        return {key: CHANGED if item == CHANGED else _hidden(item) for key, item in value.items()}
    return None if value is None else REDACTED


def _patch_value(path: str, value: Any) -> Any:
    if path == "/metadata/annotations" and isinstance(value, dict):
        return {key: REDACTED if key == LAST_APPLIED else text for key, text in value.items()}
    if path.startswith(_OPEN_PATHS) and LAST_APPLIED.replace("/", "~1") not in path:
        return value
    return redact(value, is_secret=True) if path == "" else _hidden(value)


def _redact_token(holder: Any) -> None:
    if isinstance(holder, dict) and "token" in holder:
        holder["token"] = REDACTED


def _texts(sent: Any) -> list[str]:
    """Values of the data of a Secret, or of the operations of a JSON patch."""
    if isinstance(sent, list):
        found = [operation.get("value") for operation in sent if isinstance(operation, dict)]
    else:
        found = [sent.get(name) for name in DATA] if isinstance(sent, dict) else []
    texts = []
    for value in found:
        inner = value.values() if isinstance(value, dict) else (value,)
        texts += [text for text in inner if isinstance(text, str)]
    return texts


def _list(value: Any, name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []
