"""JSON Patch, case by case."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubist.patch import jsonpatch
from kubist.patch.errors import MalformedPatch, PatchFailed, TooManyOperations

from .tables import table


@pytest.mark.parametrize("case", table("jsonpatch"))
def test_operations(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case["object"])
    patch = jsonpatch.operations(case["patch"])
    if case.get("fails"):
        with pytest.raises(PatchFailed):
            jsonpatch.apply(case["object"], patch)
    else:
        assert jsonpatch.apply(case["object"], patch) == case["after"]
        assert jsonpatch.apply(case["object"], patch) == case["after"], "a patch can be tried again"
    assert case["object"] == before, "the object itself is left alone"


def test_what_is_not_touched_is_shared() -> None:
    live = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}]}}
    patched = jsonpatch.apply(live, [{"op": "add", "path": "/metadata/labels/c", "value": "d"}])
    assert patched["spec"] is live["spec"]


def test_values_of_the_patch_are_not_written_to() -> None:
    patch = [
        {"op": "add", "path": "/data", "value": {}},
        {"op": "add", "path": "/data/k", "value": "v"},
    ]
    assert jsonpatch.apply({}, patch) == {"data": {"k": "v"}}
    assert patch[0]["value"] == {}


def test_null_is_an_empty_patch() -> None:
    assert jsonpatch.operations(None) == []


@pytest.mark.parametrize("document", [{"data": {}}, ["add"], "text", [{"op": "add", "path": 5}]])
def test_other_documents_are_malformed(document: Any) -> None:
    with pytest.raises(MalformedPatch) as refused:
        jsonpatch.operations(document)
    assert refused.value.code == 400
    assert refused.value.message.startswith("error decoding patch: json: cannot unmarshal")


def test_without_field_validation_types_of_members_are_found_late() -> None:
    patch = jsonpatch.operations([{"op": "add", "path": 5}], checked=False)
    with pytest.raises(PatchFailed) as refused:
        jsonpatch.apply({}, patch)
    assert (refused.value.code, refused.value.reason, refused.value.details) == (422, "Invalid", {})


def test_ten_thousand_operations_are_the_limit() -> None:
    assert len(jsonpatch.operations([{}] * 10_000)) == 10_000
    with pytest.raises(TooManyOperations) as refused:
        jsonpatch.operations([{}] * 10_001)
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")
    assert refused.value.message.endswith("operations in a JSON patch is 10000, got 10001")


def test_copies_cannot_grow_an_object_without_end() -> None:
    live = {"data": {"a": "x" * 1_000_000}}
    patch = [{"op": "copy", "from": "/data/a", "path": f"/data/{n}"} for n in range(4)]
    with pytest.raises(PatchFailed):
        jsonpatch.apply(live, patch)


def test_unknown_members_are_named_with_their_place() -> None:
    patch = [{"op": "test", "path": "/a"}, {"op": "test", "path": "/a", "comment": "why"}]
    assert jsonpatch.unknown_members(patch) == ['json patch unknown field "[1].comment"']
