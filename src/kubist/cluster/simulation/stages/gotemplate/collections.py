"""Functions of the sprig library for lists and dictionaries."""

from __future__ import annotations

from typing import Any

from kubist.cluster.simulation.stages.gotemplate import values
from kubist.cluster.simulation.stages.gotemplate.function import ANY, Function
from kubist.cluster.simulation.stages.gotemplate.values import described, shown, text_of, truth
from kubist.cluster.simulation.stages.limits import StageError, check_size


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise StageError(f"expected a list but got {described(value)}")
    return value


def _map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise StageError(f"expected a map but got {described(value)}")
    return value


def _dict(*given: Any) -> dict[str, Any]:
    pairs = {shown(given[at]): given[at + 1] for at in range(0, len(given) - 1, 2)}
    return pairs | ({shown(given[-1]): ""} if len(given) % 2 else {})


def _get(held: Any, key: Any) -> Any:
    return "" if held is None else _map(held).get(text_of(key, "get"), "")


def _set(held: Any, key: Any, value: Any) -> dict[str, Any]:
    """A map with another value for a key. The map itself changes, as in sprig."""
    if _contains_map(value, held):
        raise StageError("a map cannot contain itself")
    _map(held)[text_of(key, "set")] = value
    check_size(len(held))
    found: dict[str, Any] = held
    return found


def _contains_map(value: Any, held: Any) -> bool:
    left, seen = [value], 0
    while left:
        found = left.pop()
        seen += 1
        if found is held or seen > 10_000:
            return True
        if isinstance(found, list):
            left += found
        elif isinstance(found, dict):
            left += found.values()
    return False


def _unset(held: Any, key: Any) -> dict[str, Any]:
    _map(held).pop(text_of(key, "unset"), None)
    return _map(held)


def _keys(*maps: Any) -> list[str]:
    return [key for held in maps for key in sorted(_map(held))]


def _values(held: Any) -> list[Any]:
    return [_map(held)[key] for key in sorted(held)]


def _pick(held: Any, *keys: Any) -> dict[str, Any]:
    return {key: _map(held)[key] for key in keys if isinstance(key, str) and key in held}


def _omit(held: Any, *keys: Any) -> dict[str, Any]:
    return {key: value for key, value in _map(held).items() if key not in keys}


def _pluck(key: Any, *maps: Any) -> list[Any]:
    name = text_of(key, "pluck")
    return [held[name] for held in maps if name in _map(held)]


def _merged(*maps: Any) -> dict[str, Any]:
    """Maps in one; an earlier map wins."""
    found: dict[str, Any] = {}
    for held in maps:
        found = _overlaid(_map(held), found)
    return found


def _overlaid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    made = {**below, **above}
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            made[key] = _overlaid(below[key], value)
    return made


def _dig(*given: Any) -> Any:
    *keys, fallback, held = given
    for key in (text_of(key, "dig") for key in keys):
        if not isinstance(held, dict) or key not in held:
            return fallback
        held = held[key]
    return held


def _concat(*lists: Any) -> list[Any]:
    check_size(sum(len(_list(items)) for items in lists))
    return [item for items in lists for item in items]


def _unique(items: Any) -> list[Any]:
    found: list[Any] = []
    for item in _list(items)[:1000]:
        if item not in found:
            found.append(item)
    return found


def _split(separator: Any, text: Any) -> dict[str, str]:
    mark, found = text_of(separator, "split"), text_of(text, "split")
    return {f"_{at}": part for at, part in enumerate(found.split(mark) if mark else list(found))}


FUNCTIONS = (
    Function("dict", _dict, 0, ANY),
    Function("get", _get, 2, 2),
    Function("set", _set, 3, 3, walks=True),
    Function("unset", _unset, 2, 2),
    Function("hasKey", lambda held, key: held is not None and text_of(key, "hasKey") in _map(held), 2, 2),
    Function("keys", _keys, 1, ANY),
    Function("values", _values, 1, 1),
    Function("pick", _pick, 1, ANY),
    Function("omit", _omit, 1, ANY),
    Function("pluck", _pluck, 1, ANY),
    Function("merge", _merged, 1, ANY, walks=True),
    Function("dig", _dig, 3, ANY),
    Function("list", lambda *items: list(items), 0, ANY),
    Function("tuple", lambda *items: list(items), 0, ANY),
    Function("first", lambda items: _list(items)[0] if items else None, 1, 1),
    Function("last", lambda items: _list(items)[-1] if items else None, 1, 1),
    Function("rest", lambda items: _list(items)[1:], 1, 1),
    Function("initial", lambda items: _list(items)[:-1], 1, 1),
    Function("append", lambda items, item: [*_list(items), item], 2, 2),
    Function("prepend", lambda items, item: [item, *_list(items)], 2, 2),
    Function("concat", _concat, 1, ANY),
    Function("reverse", lambda items: _list(items)[::-1], 1, 1),
    Function("uniq", _unique, 1, 1, walks=True),
    Function(
        "without",
        lambda items, *gone: [item for item in _list(items) if item not in gone],
        1,
        ANY,
        walks=True,
    ),
    Function("has", lambda item, items: item in _list(items if items is not None else []), 2, 2, walks=True),
    Function("compact", lambda items: [item for item in _list(items) if truth(item)], 1, 1),
    Function(
        "sortAlpha", lambda items: sorted(values.shown(item) for item in _list(items)), 1, 1, walks=True
    ),
    Function("split", _split, 2, 2),
)
