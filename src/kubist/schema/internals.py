"""Values in the reference's internal form, which error messages show: Go names, every field, zero values.

The data is `internals.json`, made by `tools/make_internals.py`, whose docstring explains its shape."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

Object = dict[str, Any]
MOST_OBJECTS = 2000
"""Objects in a value up to which it is shown in its internal form."""
LONGEST_DIFF = 1500
"""Lines up to which texts are compared: the time grows faster than their length."""

_ZEROS: dict[str, Any] = {"string": "", "bool": False, "number": 0, "quantity": "0", "duration": "0s"}
_OF_POD = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a pod spec that its security context has internally."""


@cache
def _structs() -> dict[str, list[tuple[str, str, str]]]:
    loaded: dict[str, list[tuple[str, str, str]]] = orjson.loads(
        (Path(__file__).parent / "internals.json").read_bytes()
    )
    return loaded


def internal_form(type: str, value: Any) -> Any:
    """A value as one of an internal type, such as `core.PodSpec` or `[]core.Taint`.

    A very large value stays as it is, because its internal form is up to a hundred times as large."""
    return value if orjson.dumps(value).count(b"{") > MOST_OBJECTS else _shown(type, value)


def _shown(type: str, value: Any) -> Any:
    if type.startswith("*"):
        return None if value is None else _shown(type[1:], value)
    if type == "[]byte" or type == "nullable":
        return value
    if type.startswith("[]"):
        return None if value is None else [_shown(type[2:], item) for item in value]
    if type.startswith("map["):
        inner = type.partition("]")[2]
        return None if value is None else {key: _shown(inner, value[key]) for key in sorted(value)}
    if type in _ZEROS:
        return _ZEROS[type] if value is None else value
    if type == "tagged":
        return value or {}
    return _struct(type, value)


def _struct(name: str, value: Any) -> Object:
    if (convert := _CONVERTED.get(name)) is not None:
        value = convert(value)
    value = value or {}
    shown: Object = {}
    for go_name, json_name, type in _structs()[name]:
        if go_name:
            shown[go_name] = _shown(type, value.get(json_name))
        elif type == "metadata":
            shown |= value.get("metadata") or {}
        else:
            shown |= _struct(type, value)
    return shown


def _pod_spec(spec: Object | None) -> Object:
    spec = dict(spec or {})
    moved = {name: spec[name] for name in _OF_POD if name in spec}
    return {**spec, "securityContext": {**(spec.get("securityContext") or {}), **moved}}


def _schema_or_list(list_name: str) -> Any:
    return lambda value: {list_name: value} if isinstance(value, list) else {"schema": value}


def _schema_or_bool(value: Any) -> Object:
    return {"allows": value} if isinstance(value, bool) else {"allows": True, "schema": value}


_CONVERTED: dict[str, Any] = {
    "core.PodSpec": _pod_spec,
    "apiextensions.JSONSchemaPropsOrArray": _schema_or_list("jSONSchemas"),
    "apiextensions.JSONSchemaPropsOrStringArray": _schema_or_list("property"),
    "apiextensions.JSONSchemaPropsOrBool": _schema_or_bool,
}


def go_names(struct: str, names: Iterable[str]) -> list[str]:
    """The Go names of fields of a struct."""
    known = {json_name: go_name for go_name, json_name, _ in _structs()[struct]}
    return [known[name] for name in names]


def difference(type: str, old: Any, new: Any) -> str:
    """A unified diff of two values of an internal type, each line with its end; empty if it would be too long."""
    before, after = _lines(internal_form(type, old)), _lines(internal_form(type, new))
    if max(len(before), len(after)) > LONGEST_DIFF:
        return ""
    changes = difflib.unified_diff(before, after)
    return "".join(islice(changes, 2, None))


def _lines(value: Any) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return [line + "\n" for line in text.split("\n")]
