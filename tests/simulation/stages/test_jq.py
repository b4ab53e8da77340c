"""jq: the values of expressions, the advice for unsupported ones, and limits."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.cluster.simulation.stages.jq import Query
from kubist.cluster.simulation.stages.limits import StageError

POD: dict[str, Any] = {
    "metadata": {
        "labels": {"app.example/name": "web"},
        "finalizers": [],
        "creationTimestamp": "2024-01-01T00:00:00Z",
    },
    "spec": {"containers": [{"name": "a", "cpu": 2}, {"name": "b", "cpu": 0.5}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "False"}],
    },
}
ADVICE = "is not supported: run kwok itself against this server for Stages that use it"


def complaint(expression: str, data: Any = POD) -> str:
    """Error message of an expression; an empty string if there is none."""
    try:
        Query(expression).values(data)
    except StageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (".", [POD]),
        (" . ", [POD]),
        (".status.phase", ["Running"]),
        (".status.missing.deeper", []),
        ('.metadata.labels["app.example/name"]', ["web"]),
        ('.metadata.labels."app.example/name"', ["web"]),
        ('.["metadata"]["labels"][ "app.example/name" ]', ["web"]),
        ('."status" | ."phase"', ["Running"]),
        ('.metadata.labels["app\\u002eexample/name"]', ["web"]),
        (".spec.containers.[].name", ["a", "b"]),
        (".spec.containers[].name", ["a", "b"]),
        (".metadata.labels[]", ["web"]),
        (".metadata.finalizers.[]", []),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["False"]),
        ('.status.conditions[]|select(.type=="Ready")|.status', ["False"]),
        ('.spec.containers.[].name | select(. == "b")', ["b"]),
        ('.status.conditions.[] | select(.type == "a | b")', []),
        ('select(.status.conditions.[].type == "Ready") | .status.phase', ["Running"]),
        ('.spec.containers.[] | select(.cpu == "2")', []),
        (".spec.containers.[].cpu", [2, 0.5]),
    ],
)
def test_values(expression: str, values: list[Any]) -> None:
    assert Query(expression).values(POD) == values


@pytest.mark.parametrize(
    "expression", [".status.phase.x", ".missing[]", ".status.phase.[]", 'select(.status.phase.x == "a")']
)
def test_failed_evaluation_has_no_value(expression: str) -> None:
    assert Query(expression).values(POD) is None


def test_values_leave_nulls_out() -> None:
    assert Query(".spec.containers.[].image").values(POD) == []


@pytest.mark.parametrize(
    ("expression", "construct"),
    [
        ("def f: 1; f", "'def f: 1; f'"),
        ("reduce .[] as $x (0; . + $x)", "'reduce .[] as $x (0; . + $x)'"),
        (".a | map(.b)", "'map(.b)'"),
        (".a | length", "'length'"),
        (".a = 1", "'= 1'"),
        (".a |= 1", "'|= 1'"),
        ('.a // "b"', "'// \"b\"'"),
        (".a, .b", "', .b'"),
        (".a == 1", "'== 1'"),
        (".spec.containers[0].name", "'[0].name'"),
        (".spec.containers[1:]", "'[1:]'"),
        (".missing[]?", "'?'"),
        ("..", "'..'"),
        ("{a: .b}", "'{a: .b}'"),
        ("[.a]", "'[.a]'"),
        ('"a"', "'\"a\"'"),
        ("$x", "'$x'"),
        (".a | @base64", "'@base64'"),
        ('.a[] | select(.b != "c")', "'select(.b != \"c\")'"),
        (".a[] | select(.b)", "'select(.b)'"),
        (".a[] | select(.b == 1)", "'select(.b == 1)'"),
        ("if .a then .b else .c end", "'if .a then .b else .c end'"),
        ('.a["\\q"]', "an escape sequence in '\"\\\\q\"'"),
        ('.a["\\(.b)"]', "an escape sequence in '\"\\\\(.b)\"'"),
    ],
)
def test_unsupported_expression_gets_the_advice_to_run_kwok(expression: str, construct: str) -> None:
    assert complaint(expression) == f"jq expression {expression!r}: {construct} {ADVICE}"


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("", "the expression ends too early"),
        (".a | ", "the expression ends too early"),
        ("select(", "the expression ends too early"),
        (".[", "'[' is not supported"),
        ('."abc', "'\"abc' is not supported"),
        ("1 ~ 2", "'1 ~ 2' is not supported"),
        (".a" * 60_000, "more than 100000 characters"),
        ("\n.a\n| b\n", "'b' is not supported"),
    ],
)
def test_malformed_expression_gets_one_line(expression: str, part: str) -> None:
    with pytest.raises(StageError) as caught:
        Query(expression)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        " | ".join(["."] * 30_000),
        " | ".join([".[]"] * 20_000),
        ".a" * 50_000,
        " | ".join(['select(. == "a")'] * 5000),
        '."a' * 30_000,
        "." + '["a"' * 20_000,
    ],
)
def test_costly_expression_ends_soon(expression: str) -> None:
    began = time.thread_time()
    assert "\n" not in complaint(expression, [[[1] * 1000] * 100])
    assert time.thread_time() - began < 20


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
_WORDS = """. .a .[] [ ] ( ) | == select( "a" "\\( ["a"] .["a"] { } , // < and or not if then end as $x ? .. 1 null"""


@given(st.lists(st.sampled_from(_WORDS.split()), max_size=12).map(" ".join) | st.text(max_size=30), _JSON)
def test_no_expression_crashes(expression: str, data: Any) -> None:
    assert "\n" not in complaint(expression, data)
