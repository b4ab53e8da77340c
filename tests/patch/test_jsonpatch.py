"""JSON Patch: table of cases."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubist.model.patch import jsonpatch
from kubist.model.patch.errors import MalformedPatch, PatchFailed, TooManyOperations

from .tables import table


@pytest.mark.parametrize("case", table("jsonpatch"))
def test_json_patch_operations(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case["object"])
    patch = jsonpatch.operations(case["patch"])
    if case.get("fails"):
        with pytest.raises(PatchFailed):
            jsonpatch.apply(case["object"], patch)
    else:
        assert jsonpatch.apply(case["object"], patch) == case["after"]
        assert jsonpatch.apply(case["object"], patch) == case["after"], "a patch can be tried again"
    assert case["object"] == before, "the object itself is left alone"


def test_json_patch_shares_untouched_parts() -> None:
    live = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}]}}
    patched = jsonpatch.apply(live, [{"op": "add", "path": "/metadata/labels/c", "value": "d"}])
    assert patched["spec"] is live["spec"]


def test_json_patch_does_not_modify_its_values() -> None:
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": "/data", "value": {}},
        {"op": "add", "path": "/data/k", "value": "v"},
    ]
    assert jsonpatch.apply({}, patch) == {"data": {"k": "v"}}
    assert patch[0]["value"] == {}


def test_null_is_an_empty_json_patch() -> None:
    assert jsonpatch.operations(None) == []


@pytest.mark.parametrize("document", [{"data": {}}, ["add"], "text", [{"op": "add", "path": 5}]])
def test_json_patch_must_be_a_list_of_objects(document: Any) -> None:
    with pytest.raises(MalformedPatch) as refused:
        jsonpatch.operations(document)
    assert refused.value.code == 400
    assert refused.value.message.startswith("error decoding patch: json: cannot unmarshal")


def test_ignore_validation_defers_type_errors_of_members() -> None:
    patch = jsonpatch.operations([{"op": "add", "path": 5}], checked=False)
    with pytest.raises(PatchFailed) as refused:
        jsonpatch.apply({}, patch)
    assert (refused.value.code, refused.value.reason, refused.value.details) == (422, "Invalid", {})


def test_json_patch_is_limited_to_ten_thousand_operations() -> None:
    assert len(jsonpatch.operations([{}] * 10_000)) == 10_000
    with pytest.raises(TooManyOperations) as refused:
        jsonpatch.operations([{}] * 10_001)
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")
    assert refused.value.message.endswith("operations in a JSON patch is 10000, got 10001")


def test_copy_operations_are_limited_in_bytes() -> None:
    live = {"data": {"a": "x" * 1_000_000}}
    patch = [{"op": "copy", "from": "/data/a", "path": f"/data/{n}"} for n in range(4)]
    with pytest.raises(PatchFailed):
        jsonpatch.apply(live, patch)


def test_unknown_members_are_reported_with_their_index() -> None:
    patch = [{"op": "test", "path": "/a"}, {"op": "test", "path": "/a", "comment": "why"}]
    assert jsonpatch.unknown_members(patch) == ['json patch unknown field "[1].comment"']


NEST: list[dict[str, Any]] = [
    {"op": "move", "from": "/a", "path": "/b"},
    {"op": "add", "path": "/a", "value": {}},
    {"op": "move", "from": "/b", "path": "/a/b"},
]


@pytest.mark.parametrize(
    "more", [[], [{"op": "copy", "from": "/a", "path": "/c"}], [{"op": "test", "path": "/a", "value": {}}]]
)
def test_patch_that_nests_values_too_deeply_fails(more: list[dict[str, Any]]) -> None:
    assert jsonpatch.apply({"a": {}}, NEST * 200)["a"]["b"]["b"]
    for times in (300, 3_000):
        with pytest.raises(PatchFailed):
            jsonpatch.apply({"a": {}}, NEST * times + more)
