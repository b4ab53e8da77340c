"""Strategic merge patch: table of cases."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubist.model.meta.status import APIError
from kubist.model.patch import strategic
from kubist.model.patch.errors import MalformedPatch
from kubist.model.schema.node import Field, Schema

from .tables import table


def _struct(name: str, /, **fields: Schema) -> Schema:
    return Schema("struct", name=name, fields={key: Field(key, schema) for key, schema in fields.items()})


_text = Schema("string")
_texts = Schema("map", items=_text)
_container = _struct("v1.Container", name=_text, image=_text, tty=Schema("boolean"), limits=_texts)
_port = _struct("v1.Port", port=Schema("integer"), protocol=_text, name=_text)
_strategy = Schema(
    "struct",
    fields={"type": Field("type", _text), "rollingUpdate": Field("rollingUpdate", _texts)},
    patch_strategies=("retainKeys",),
)
_workload = _struct(
    "v1.Workload",
    labels=_texts,
    replicas=Schema("integer"),
    args=Schema("list", items=_text),
    tags=Schema("list", items=_text, patch_strategies=("merge",)),
    containers=Schema("list", items=_container, merge_key="name", patch_strategies=("merge",)),
    ports=Schema("list", items=_port, merge_key="port", patch_strategies=("merge", "retainKeys")),
    strategy=_strategy,
)


@pytest.mark.parametrize("case", table("strategic"))
def test_strategic_merge(case: dict[str, Any]) -> None:
    before = copy.deepcopy((case["object"], case["patch"]))
    if "refused" in case:
        with pytest.raises(APIError) as refused:
            strategic.apply(case["object"], case["patch"], _workload)
        assert refused.value.code == case["refused"]
    else:
        assert strategic.apply(case["object"], case["patch"], _workload) == case["after"]
    assert (case["object"], case["patch"]) == before, "neither is written to"


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"labels": {"$patch": 7}}, "unknown patch type: %!s(int64=7) in map: map[$patch:7]"),
        (
            {"containers": [{"$patch": "delete", "image": "a"}]},
            "map: map[$patch:delete image:a] does not contain declared merge key: name",
        ),
        ({"$setElementOrder/containers": "a"}, "expected a []interface {}, but received a string"),
        (
            {"$setElementOrder/nothing": []},
            'unable to find api field in struct Workload for the json field "nothing"',
        ),
    ],
)
def test_rejected_strategic_patches_name_the_cause(patch: dict[str, Any], message: str) -> None:
    with pytest.raises(APIError) as refused:
        strategic.apply({"labels": {"a": "1"}, "containers": [{"name": "a"}]}, patch, _workload)
    assert refused.value.message == message


def test_strategic_patch_must_be_an_object_or_null() -> None:
    assert strategic.check(None) == {}
    with pytest.raises(MalformedPatch, match="cannot unmarshal array into Go value of type map"):
        strategic.check([{"op": "remove"}])
