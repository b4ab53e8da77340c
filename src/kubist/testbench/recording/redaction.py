"""Redaction: replaces the data of Secrets, and tokens, in recorded objects. Headers are never recorded."""

from __future__ import annotations

from typing import Any

from kubist.model.meta.object import Object

REDACTED = "<redacted>"
CHANGED = "<redacted, changed>"
"""Value of a Secret that differs from the one before the write."""
DATA = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TOKENS = ("TokenRequest", "TokenReview")
"""Kinds with a token, in `spec` or in `status`."""
_OPEN = {
    "apiVersion": str,
    "kind": str,
    "type": str,
    "immutable": bool,
    "metadata": dict,
    "columnDefinitions": list,
}
"""Fields of a Secret, or of a list or Table of them, that are shown, and their types. All others are hidden, because a
misspelt field may have secret values too."""
_OPEN_STATUS = ("apiVersion", "kind", "metadata", "status", "message", "reason", "details", "code")
_OPERATION = ("op", "path", "from")
_OPEN_PATHS = ("/metadata/", "/type", "/immutable")
"""Paths of a Secret whose values a JSON patch may show."""
_OPEN_OPTIONS = {
    "apiVersion": str,
    "kind": str,
    "dryRun": list,
    "gracePeriodSeconds": int,
    "orphanDependents": bool,
    "propagationPolicy": str,
    "ignoreStoreReadErrorWithClusterBreakingPotential": bool,
}
"""Fields of DeleteOptions, apart from `preconditions`, and their types."""
SHORTEST = 4
"""Characters of the shortest value that is searched for in messages."""
SEARCHED = 8
"""Characters at the beginning of a value that are searched for."""


def redact(value: Any, *, is_secret: bool, has_token: bool = False) -> Any:
    """Redacts an object, or a list or Table of objects, in place. `is_secret`: objects without a kind are Secrets.
    `has_token`: they are a TokenRequest or a TokenReview."""
    if not isinstance(value, dict):
        return _hidden(value) if is_secret or has_token else value
    kind = value.get("kind")
    if has_token or kind in TOKENS:
        for name in ("spec", "status"):
            _redact_token(value.get(name))
    is_secret = is_secret or kind in ("Secret", "SecretList")
    for item in _list(value, "items"):
        redact(item, is_secret=is_secret)
    for row in _list(value, "rows"):
        if isinstance(row, dict):
            redact(row.get("object"), is_secret=is_secret)
    if is_secret:
        _redact_secret(value)
    return value


def redact_patch(patch: Any, *, is_secret: bool, has_token: bool = False) -> Any:
    """Redacts a patch in place: a list is a JSON patch."""
    if not isinstance(patch, list):
        return redact(patch, is_secret=is_secret, has_token=has_token)
    return [_shown_operation(operation) for operation in patch] if is_secret else patch


def _shown_operation(operation: Any) -> Any:
    if not isinstance(operation, dict):
        return _hidden(operation)
    path = str(operation.get("path", ""))
    return {
        name: _patch_value(path, value)
        if name == "value"
        else value
        if name in _OPERATION
        else _hidden(value)
        for name, value in operation.items()
    }


def redact_delete_options(options: Any) -> Any:
    """Redacts the body of a delete of Secrets in place. Only the fields of DeleteOptions are shown, because a client
    may have sent a Secret."""
    if not isinstance(options, dict):
        return _hidden(options)
    for name, value in options.items():
        if name == "preconditions" and isinstance(value, dict):
            options[name] = {key: _shown_precondition(key, item) for key, item in value.items()}
        elif not (name in _OPEN_OPTIONS and isinstance(value, _OPEN_OPTIONS[name])):
            options[name] = _hidden(value)
    return options


def hidden_fields(sent: Any, redaction: Any) -> Any:
    """Fields of an object whose values redaction has replaced, as they were sent."""
    if not isinstance(sent, dict):
        return sent
    return {name: value for name, value in sent.items() if redaction[name] != value}


def _shown_precondition(name: str, value: Any) -> Any:
    is_open = name in ("uid", "resourceVersion") and isinstance(value, str)
    return value if is_open else _hidden(value)


def redact_message(status: Any, sent: Any) -> Any:
    """Removes the values of a Secret that was sent from the message of a Status. A message may have the beginning of
    the body, and all of a body that cannot be read (None) may be secret."""
    if isinstance(status, dict) and isinstance(status.get("message"), str):
        texts = {text[:SEARCHED] for text in _texts(sent) if len(text) >= SHORTEST}
        message = status["message"]
        if sent is None or any(text in message for text in texts):
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
    for name, value in secret.items():
        if not _is_open(secret, name):
            secret[name] = _hidden(value)
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = REDACTED


def _is_open(secret: Object, name: str) -> bool:
    """Whether a field of a Secret, or of a list of them, is shown."""
    value = secret[name]
    if secret.get("kind") == "Status" and name in _OPEN_STATUS:
        return True
    if name in ("items", "rows"):
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return name in _OPEN and isinstance(value, _OPEN[name])


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
        stack = [operation.get("value") for operation in sent if isinstance(operation, dict)]
    elif isinstance(sent, dict):
        stack = [value for name, value in sent.items() if not _is_open(sent, name)]
    else:
        stack = []
    texts = []
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            stack += value.values() if isinstance(value, dict) else value
    return texts


def _list(value: Any, name: str) -> list[Any]:
    items = value.get(name)
    return items if isinstance(items, list) else []
