"""Fields of older versions of the group that are integer annotations in apps/v1."""

from __future__ import annotations

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import status
from kubist.model.meta.numerals import parse_int64
from kubist.model.meta.object import Object


def integer_annotation(obj: Object, name: str, what: str = "") -> int | None:
    """Integer value of the annotation, None without it. Other text is a 400; `what` prefixes the parse error."""
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
