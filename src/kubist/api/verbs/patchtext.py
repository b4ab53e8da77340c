"""JSON text of a patched object, which error messages quote. Untouched parts keep the text of the object, inserted
values the text of the patch, and objects on the path to them are written with sorted keys."""

from __future__ import annotations

from typing import Any

from kubist.base.jsontext import json
from kubist.base.jsontext.complaints import Repeats
from kubist.model.meta.numerals import written
from kubist.model.meta.object import Object
from kubist.model.patch import jsonpatch, merge


class PatchedText:
    """Result of a JSON patch (a list of operations) or a merge patch, with numbers as the client wrote them. `current`
    is the object before, with keys in the order of its text."""

    def __init__(self, body: bytes, current: Object, *, is_json_patch: bool) -> None:
        document, repeats = json.parse_repeats(body, json.Spelled)
        self.repeats: Repeats = repeats
        self.value: Any
        if is_json_patch:
            self.value = jsonpatch.apply(current, jsonpatch.operations(document, checked=False), repeats)
        else:
            self.value = merge.apply(current, document)
        repeats.sorted.add(id(self.value))

    def __str__(self) -> str:
        return self._written(self.value)

    def _written(self, value: Any) -> str:
        if isinstance(value, dict):
            inner = (f"{written(key)}:{self._written(item)}" for key, item in self.repeats.pairs(value))
            return f"{{{','.join(inner)}}}"
        if isinstance(value, list):
            return f"[{','.join(map(self._written, value))}]"
        return value.text if isinstance(value, json.Literal) else written(value)


def beyond_range(value: Any) -> bool:
    """Whether a value holds a number beyond the range of a float."""
    if isinstance(value, dict):
        return any(map(beyond_range, value.values()))
    if isinstance(value, list):
        return any(map(beyond_range, value))
    return isinstance(value, float) and value - value != 0
