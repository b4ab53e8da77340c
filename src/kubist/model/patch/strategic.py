"""Strategic merge patch: a merge patch that takes list merge keys from the schema.

Directives in the patch: `$patch`, `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`.
"""

from __future__ import annotations

from typing import Any

import orjson

from kubist.base.jsontext.json import json_type
from kubist.model.meta.object import Object
from kubist.model.patch.errors import MalformedPatch, PatchFailed, UnclassifiedError
from kubist.model.patch.values import format_value, go_type
from kubist.model.schema.node import Schema

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ELEMENT_ORDER = "$setElementOrder"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList"


def check(document: Any) -> Object:
    """Patch of a parsed document. Null is an empty patch."""
    if document is None:
        return {}
    if not isinstance(document, dict):
        what = f"cannot unmarshal {json_type(document)} into Go value of type map[string]interface {{}}"
        raise MalformedPatch(f"json: {what}")
    return document


def apply(original: Object, patch: Object, schema: Schema) -> Object:
    """`original` merged with `patch`. Arguments are not modified. The result shares untouched parts."""
    return _merge_map(original, patch, schema)


def _merge_map(original: Object, patch: Object, schema: Schema) -> Object:
    if _DIRECTIVE in patch:
        return _replaced_map(patch)
    merged = original.copy()
    if _RETAIN_KEYS in patch:
        _retain_keys(merged, patch)
    done: set[str] = {_RETAIN_KEYS}
    for key in patch:
        if key.startswith(_ELEMENT_ORDER):
            done.add(key)
            done.add(_set_element_order(merged, patch, key, schema))
    for key, value in patch.items():
        if key in done:
            continue
        deletion = key.startswith(_DELETE_FROM_LIST)
        name = _target(key, _DELETE_FROM_LIST, "primitive list") if deletion else key
        if value is None:
            merged.pop(name, None)
            continue
        current = merged.get(name)
        if isinstance(value, dict) and isinstance(current, dict):
            field = _field(schema, name)
            replace = _strategy(field) == "replace"
            merged[name] = value if replace else _merge_map(current, value, field)
        elif isinstance(value, list) and isinstance(current, list):
            field = _list_field(schema, name)
            merged[name] = _merge_list(current, value, field, deletion)
        elif not deletion:
            value = _plain(value)
            if value is _DROPPED:
                merged.pop(name, None)
            else:
                merged[name] = value
    return merged


def _replaced_map(patch: Object) -> Object:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Object) -> UnclassifiedError:
    named = (
        directive if isinstance(directive, str) else f"%!s({go_type(directive)}={format_value(directive)})"
    )
    return UnclassifiedError(f"unknown patch type: {named} in map: {format_value(patch)}")


def _retain_keys(merged: Object, patch: Object) -> None:
    """Deletes all keys that are not in `$retainKeys`. All keys that the patch sets must be in it."""
    keys = patch[_RETAIN_KEYS]
    if not isinstance(keys, list):
        raise MalformedPatch("invalid patch format of retainKeys")
    retained = {key for key in keys if isinstance(key, str)}
    for key, value in patch.items():
        directive = key == _RETAIN_KEYS or key.startswith((_DELETE_FROM_LIST, _ELEMENT_ORDER))
        if value is not None and not directive and key not in retained:
            raise MalformedPatch("invalid patch format of retainKeys")
    for key in merged.keys() - retained:
        del merged[key]


_DROPPED: Any = object()


def _plain(value: Any) -> Any:
    """Value for a place without a current value: without nulls and without directive maps."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _DROPPED
        plain = {key: _plain(item) for key, item in value.items() if item is not None}
        return {key: item for key, item in plain.items() if item is not _DROPPED}
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return [item for item in items if item is not _DROPPED]
    return value


# ── schema ──


_STRUCTS = {"raw": "RawExtension", "json": "JSON", "fields-v1": "FieldsV1"}
"""Structs that hold arbitrary JSON. None of their Go fields has a JSON name."""


def _field(schema: Schema, name: str) -> Schema:
    if schema.format in _STRUCTS:
        missing = f"unable to find api field in struct {_STRUCTS[schema.format]}"
        raise UnclassifiedError(f'{missing} for the json field "{name}"')
    if schema.type != "struct":
        what = f"merging an object in json but data type is not struct, instead is: {schema.type}"
        raise UnclassifiedError(what)
    field = schema.fields.get(name)
    if field is None:
        struct = schema.name.rpartition(".")[2]
        raise UnclassifiedError(f'unable to find api field in struct {struct} for the json field "{name}"')
    return field.schema


def _list_field(schema: Schema, name: str) -> Schema:
    field = _field(schema, name)
    if field.type != "list":
        raise UnclassifiedError(f"expected slice or array type, but got: {schema.type}")
    if field.items is not None and field.items.type == "list":
        raise UnclassifiedError("unexpected slice of slice")
    return field


def _strategy(schema: Schema) -> str:
    return next((strategy for strategy in schema.patch_strategies if strategy != "retainKeys"), "")


def _target(key: str, prefix: str, what: str) -> str:
    """Field that a directive such as `$setElementOrder/containers` names."""
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        raise MalformedPatch(f"invalid patch format of {what}")
    return name


# ── lists ──


def _merge_list(original: list[Any], patch: list[Any], schema: Schema, deletion: bool) -> list[Any]:
    if _strategy(schema) != "merge" and not deletion:
        return patch
    if not original and not patch:
        return original
    if not _of_maps(original, patch):
        if deletion:
            unwanted = {_identity(value) for value in patch}
            return [value for value in original if _identity(value) not in unwanted]
        merged = list({_identity(value): value for value in (*original, *patch)}.values())
        return _ordered(merged, patch, original, "")
    key = schema.merge_key
    if not key:
        raise UnclassifiedError("cannot merge lists without merge key for struct")
    original, patch = _without_directives(original, patch, key)
    return _ordered(_merge_elements(original, patch, key, schema), patch, original, key)


def _of_maps(*lists: list[Any]) -> bool:
    """Whether the lists contain maps. All elements must have one type, which must not be list."""
    kinds = dict.fromkeys(type(value) for values in lists for value in values)
    if next(iter(kinds), None) is list:
        raise PatchFailed("lists of lists are not supported")
    if not kinds:
        raise UnclassifiedError("no elements in any of the given slices")
    if len(kinds) > 1:
        raise UnclassifiedError(f"list element types are not identical: {format_value(list(lists))}")
    return dict in kinds


def _identity(value: Any) -> Any:
    """Hashable form of a value. It differs for 1, 1.0 and true."""
    return value if isinstance(value, str) else orjson.dumps(value)


def _key_of(element: Any, key: str) -> Any:
    if not isinstance(element, dict):
        raise UnclassifiedError(f"expected a {go_type({})}, but received a {go_type(element)}")
    if key not in element:
        raise UnclassifiedError(f"map: {format_value(element)} does not contain declared merge key: {key}")
    return _identity(element[key])


def _without_directives(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Executes the directive elements of the patch: delete an element, replace the list."""
    plain, unwanted, replace = [], set(), False
    for element in patch:
        if _DIRECTIVE not in element:
            plain.append(element)
            continue
        match element[_DIRECTIVE]:
            case "delete":
                unwanted.add(_key_of(element, key))
            case "replace":
                replace = True
            case "merge":
                raise UnclassifiedError("merging lists cannot yet be specified in the patch")
            case directive:
                raise _unknown_directive(directive, element)
    if replace:
        return plain, []
    if unwanted:
        original = [e for e in original if key not in e or _identity(e[key]) not in unwanted]
    return original, plain


def _merge_elements(original: list[Any], patch: list[Any], key: str, schema: Schema) -> list[Any]:
    merged = original.copy()
    places: dict[Any, int] = {}
    for place, element in enumerate(merged):
        if key in element:
            places.setdefault(_identity(element[key]), place)
    for element in patch:
        identity = _key_of(element, key)
        place = places.get(identity, -1)
        if place >= 0:
            assert schema.items is not None
            merged[place] = _merge_map(merged[place], element, schema.items)
        else:
            places[identity] = len(merged)
            merged.append(element)
    return merged


# ── order: that of the patch; live elements that the patch does not name keep their live order in between ──


def _ordered(merged: list[Any], patch_list: list[Any], live: list[Any], key: str) -> list[Any]:
    """Elements in the order of `patch_list`. Elements that `patch_list` does not name keep the order of `live`."""
    if key:
        identities = [_key_of(element, key) for element in merged]
        wanted_at = _places([_key_of(element, key) for element in patch_list])
        live_at = _places([_key_of(element, key) for element in live])
    else:
        identities = [_identity(element) for element in merged]
        wanted_at = _places([_identity(element) for element in patch_list])
        live_at = _places([_identity(element) for element in live])
    pairs = list(zip(identities, merged, strict=True))
    named = _sorted([pair for pair in pairs if pair[0] in wanted_at], wanted_at)
    others = _sorted([pair for pair in pairs if pair[0] not in wanted_at], live_at)
    result: list[Any] = []
    turn = 0
    for identity, element in named:
        while turn < len(others) and _before(others[turn][0], identity, live_at):
            result.append(others[turn][1])
            turn += 1
        result.append(element)
    result.extend(element for _, element in others[turn:])
    return result


def _places(identities: list[Any]) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for place, identity in enumerate(identities):
        places.setdefault(identity, place)
    return places


def _before(left: Any, right: Any, places: dict[Any, int]) -> bool:
    return left in places and right in places and places[left] < places[right]


def _sorted(pairs: list[tuple[Any, Any]], places: dict[Any, int]) -> list[tuple[Any, Any]]:
    """Pairs sorted by place. Pairs without a place come last."""
    return sorted(pairs, key=lambda pair: places.get(pair[0], len(places)))


def _set_element_order(merged: Object, patch: Object, directive: str, schema: Schema) -> str:
    """Merges and orders the list that the directive names. Returns the name of the list, which needs no further
    merge."""
    order = patch[directive]
    if not isinstance(order, list):
        raise UnclassifiedError(f"expected a {go_type([])}, but received a {go_type(order)}")
    name = _target(directive, _ELEMENT_ORDER, "setElementOrder list")
    live, elements = merged.get(name, []), patch.get(name, [])
    for values in (live, elements):
        if not isinstance(values, list):
            raise UnclassifiedError(f"expected a {go_type([])}, but received a {go_type(values)}")
    field = _list_field(schema, name)
    key = field.merge_key
    _check_order(elements, order, key)
    if name not in merged and name not in patch:
        return name
    if name not in patch:
        result = live
    elif name not in merged:
        result = _plain(elements)
    else:
        result = _merge_list(live, elements, field, deletion=False)
    _of_maps(live, elements)
    merged[name] = _ordered(result, order, live, key)
    return name


def _check_order(elements: list[Any], order: list[Any], key: str) -> None:
    """Checks that the elements of the patch are in `$setElementOrder`, in that order."""
    if not elements or not order:
        return
    places = _places([_key_of(element, key) if key else _identity(element) for element in order])
    last = -1
    for element in elements:
        if key and isinstance(element, dict) and _DIRECTIVE in element:
            continue
        place = places.get(_key_of(element, key) if key else _identity(element), -1)
        if place <= last:
            what = f"{format_value(elements)}\n doesn't match {_ELEMENT_ORDER} list:\n{format_value(order)}\n"
            raise UnclassifiedError(f"The order in patch list:\n{what}")
        last = place
