"""RuntimeClass: handlers, overhead and scheduling."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object


@pytest.fixture
def classes(kind_of: Any) -> Any:
    return kind_of("node.k8s.io/v1", "RuntimeClass")


CLASSES: list[tuple[Object, list[tuple[str, str]]]] = [
    ({"handler": "runc"}, []),
    ({}, [("handler", "Required")]),
    ({"handler": "Run_C"}, [("handler", "Invalid")]),
    ({"handler": "a", "overhead": {"podFixed": {"cpu": "-1"}}}, [("overhead.limits[cpu]", "Invalid")]),
    (
        {"handler": "a", "scheduling": {"tolerations": [{"key": "a"}, {"key": "a"}]}},
        [("scheduling.tolerations[1]", "Duplicate")],
    ),
    (
        {"handler": "a", "scheduling": {"nodeSelector": {"a": "b c"}}},
        [("scheduling.nodeSelector", "Invalid")],
    ),
]


@pytest.mark.parametrize(("fields", "causes"), CLASSES)
def test_invalid_fields_are_rejected(classes: Any, fields: Object, causes: list[tuple[str, str]]) -> None:
    refused = classes.create_errors({"metadata": {"name": "x"}, **fields})
    assert [cause for cause in refused if "tolerations" not in cause[0] or cause[1] == "Duplicate"] == causes


def test_handler_is_immutable(classes: Any) -> None:
    old = classes.stored({"metadata": {"name": "x"}, "handler": "runc"})
    assert ("handler", "Invalid") in classes.change_errors(old, lambda obj: obj.update(handler="crun"))


def test_deprecated_node_labels_warn(classes: Any) -> None:
    new = classes.stored(
        {
            "metadata": {"name": "x"},
            "handler": "a",
            "scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
        }
    )
    assert list(classes.strategy.warnings(classes.context, new, None)) == [
        'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
