"""Fields of older versions of the group that live on as annotations whose value is an integer."""

from __future__ import annotations

from kubist.meta import status
from kubist.meta.fields import quoted
from kubist.meta.integers import parse_int64
from kubist.resources.strategy import Object


def integer_annotation(obj: Object, name: str, what: str = "") -> int | None:
    """The annotation's number, None without it. Anything else makes the object unreadable."""
    text = (obj["metadata"].get("annotations") or {}).get(name)
    if text is None:
        return None
    value = parse_int64(text)
    if value is None:
        kind = obj["kind"]
        raise status.bad_request(
            f'{kind} in version "v1" cannot be handled as a {kind}: {what}'
            f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax"
        )
    return value


def set_integer_annotation(obj: Object, name: str, value: int) -> None:
    obj["metadata"].setdefault("annotations", {})[name] = str(value)


def drop_annotation(obj: Object, name: str) -> None:
    annotations = obj["metadata"].get("annotations")
    if annotations and name in annotations:
        del annotations[name]
        if not annotations:
            del obj["metadata"]["annotations"]
