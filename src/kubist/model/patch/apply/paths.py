"""Path elements in FieldsV1 form.

`f:name` is a field, `k:{"name":"a"}` an element of a keyed list, `v:"a"` an element of a set and `i:0` an
index. Equal elements have equal strings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from kubist.base.caching import bounded_cache
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.numerals import written

Element = str


def field(name: str) -> Element:
    return "f:" + name


def key(pairs: Iterable[tuple[str, Any]]) -> Element:
    """Element of a keyed list from its key fields, which must be sorted by name."""
    return "k:{" + ",".join(f"{_json(name)}:{_json(value)}" for name, value in pairs) + "}"


def value(of: Any) -> Element:
    return "v:" + _json(of)


def _json(of: Any) -> str:
    """JSON text of a value. 1.0 is written as 1."""
    text = orjson.dumps(of).decode() if isinstance(of, (str, int)) else written(of, exponent_digits=2)
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def canonical(element: Element) -> Element | None:
    """Canonical form of an element from a client. None: an unknown type of element.

    A malformed element is a ValueError.
    """
    if len(element) < 2:
        raise ValueError("key must be 2 characters long:")
    if element[1] != ":":
        raise ValueError(f"missing colon: {element}")
    content = element[2:]
    match element[0]:
        case "f":
            return element
        case "k":
            fields = orjson.loads(content)
            if not isinstance(fields, dict):
                raise ValueError(f"not an object: {content}")
            return key(sorted(fields.items()))
        case "v":
            return value(orjson.loads(content))
        case "i":
            return f"i:{int(content)}"
        case _:
            return None


@bounded_cache(entries=4096, key_length=256)
def order(element: Element) -> tuple[Any, ...]:
    """Sort key: fields, then keys, then values, then indices, each by content."""
    content = element[2:]
    match element[0]:
        case "f":
            return (1, content)
        case "k":
            fields = orjson.loads(content)
            return (2, *((name, _rank(fields[name])) for name in sorted(fields)))
        case "v":
            return (3, _rank(orjson.loads(content)))
        case "i":
            return (4, int(content))
        case _:
            return (0,)


def _rank(of: Any) -> tuple[Any, ...]:
    """Sort key of a value. Values of different types are ordered by type."""
    if isinstance(of, bool):
        return (2, of)
    if isinstance(of, (int, float)):
        return (0, of)
    if isinstance(of, str):
        return (1, of)
    if isinstance(of, list):
        return (3, *map(_rank, of))
    if isinstance(of, dict):
        return (4, *((name, _rank(of[name])) for name in sorted(of)))
    return (5,)


def format_path(path: Iterable[Element]) -> str:
    """Path in the form of error messages: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(_shown_element, path))


def _shown_element(element: Element) -> str:
    content = element[2:]
    match element[0]:
        case "f":
            return "." + content
        case "k":
            fields = orjson.loads(content)
            return "[" + ",".join(f"{name}={_shown_value(fields[name])}" for name in sorted(fields)) + "]"
        case "v":
            return f"[={_shown_value(orjson.loads(content))}]"
        case _:
            return f"[{content}]"


def _shown_value(of: Any) -> str:
    return quoted(of) if isinstance(of, str) else orjson.dumps(of).decode()
