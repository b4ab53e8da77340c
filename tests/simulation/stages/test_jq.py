"""jq: the outputs of expressions, the errors of unsupported ones, and limits."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.cluster.simulation.stages.jq import Query
from kubist.cluster.simulation.stages.limits import MAX_DEPTH, StageError

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


def complaint(expression: str, data: Any) -> str:
    """Error message of an expression; an empty string if there is none."""
    try:
        Query(expression).outputs(data)
    except StageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("expression", "outputs"),
    [
        (".", [POD]),
        (".spec.containers[0] | to_entries | map(.key)", [["cpu", "name"]]),
        ('"ab" * 2, ("" / ","), ("-1.5" | tonumber | round), ("A" | test("a"; "i"))', ["abab", [], -2, True]),
        (".status.phase", ["Running"]),
        (".status.missing.deeper", [None]),
        ('.metadata.labels["app.example/name"]', ["web"]),
        ('.metadata.labels."app.example/name"', ["web"]),
        (".spec.containers[0].name, .spec.containers[-1].name", ["a", "b"]),
        (".spec.containers[5]", [None]),
        (".spec.containers.[].name", ["a", "b"]),
        (".spec.containers[1:]", [[{"name": "b", "cpu": 0.5}]]),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["False"]),
        ('.status.conditions[] | select(.type != "Ready" and .status == "True") | .type', ["Initialized"]),
        ('.missing // "fallback"', ["fallback"]),
        ("false // null // 3", [3]),
        (".missing[]?", []),
        ('try error("no") catch .', ["no"]),
        ("[.spec.containers[].cpu] | add", [2.5]),
        ('.spec.containers | map(.name) | join("-")', ["a-b"]),
        (".spec.containers | length", [2]),
        (".metadata.labels | keys", [["app.example/name"]]),
        ('.metadata | has("finalizers"), has("annotations")', [True, False]),
        ('.status.phase | test("^Run"), startswith("R"), ascii_downcase', [True, True, "running"]),
        ('.status.conditions | any(.type == "Ready"), all(.status == "True")', [True, False]),
        ('if .status.phase == "Running" then "yes" elif .x then 1 else "no" end', ["yes"]),
        (".spec.containers[] as $c | .status.phase + $c.name", ["Runninga", "Runningb"]),
        (
            '{phase: .status.phase, n: (.spec.containers|length), "k": 1}',
            [{"phase": "Running", "n": 2, "k": 1}],
        ),
        ('"phase \\(.status.phase), \\(1 + 2)"', ["phase Running, 3"]),
        ("1 + 2 * 3 - 4 / 2, 7 % 4, -(3)", [5, 3, -3]),
        ("[3, 1, 2] | sort, max, reverse", [[1, 2, 3], 3, [2, 1, 3]]),
        (
            '[null, true, 1, "a", [], {}] | sort | map(type)',
            [["null", "boolean", "number", "string", "array", "object"]],
        ),
        ('{"a": 1} | to_entries', [[{"key": "a", "value": 1}]]),
        ('{"a": 1} | with_entries({key: .key, value: (.value + 1)})', [{"a": 2}]),
        (".spec.containers | sort_by(.cpu) | map(.name), (group_by(.cpu > 1) | length)", [["b", "a"], 2]),
        ("[.metadata.labels | .. | strings] | first", ["web"]),
        ("now - (.metadata.creationTimestamp | fromdate)", [100]),
        ("first(.spec.containers[].name), isempty(empty)", ["a", True]),
        ('"5" | tonumber', [5]),
        ("[1, [2, [3]]] | flatten", [[1, 2, 3]]),
        ('["a", "b"] | contains(["b"]), ("b" | inside("abc"))', [True, True]),
        ('"# no comment" # a comment', ["# no comment"]),
    ],
)
def test_outputs(expression: str, outputs: list[Any]) -> None:
    assert Query(expression).outputs(POD, now=1704067300.0) == outputs


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("", "the expression is empty"),
        ("def f: 1; f", "'def' is not supported"),
        ("reduce .[] as $x (0; . + $x)", "'reduce' is not supported"),
        (".a = 1", "assignment = is not supported"),
        (".a |= 1", "assignment |= is not supported"),
        ("@base64", "format @base64 is not supported"),
        ("nonsense(1)", "'nonsense' is not known or not supported"),
        ("length(1)", "length does not take 1 arguments"),
        (". as [$a] | $a", "only `as $name` is supported"),
        ("$x", "the variable $x is not defined"),
        (".a | ", "unexpected the end"),
        (".[", "unexpected the end"),
        ("(1", "expected ')'"),
        ('"abc', "a string is not closed"),
        ('"\\q"', "unknown escape"),
        ("1 ~ 2", "unexpected character"),
        ("if 1 then 2", "expected 'end'"),
        ("1 2", "unexpected '2'"),
        ("(" * (MAX_DEPTH + 1), "nested deeper"),
        ("x" * 200_000, "more than 100000 characters"),
    ],
)
def test_malformed_or_unsupported_expression_gets_one_line(expression: str, part: str) -> None:
    with pytest.raises(StageError) as caught:
        Query(expression)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        (".status.phase.x", 'cannot index string with "x"'),
        (".missing[]", "cannot iterate over null"),
        ('1 + "a"', "cannot be added"),
        ("1 / 0", "divisor is zero"),
        ('"x" | tonumber', "cannot be parsed as a number"),
        ('error("why")', "why"),
    ],
)
def test_failed_evaluation_names_its_cause(expression: str, part: str) -> None:
    with pytest.raises(StageError, match=r".+") as caught:
        Query(expression).outputs(POD)
    assert part in str(caught.value)
    assert Query(expression).values(POD) is None


def test_values_leave_nulls_out() -> None:
    assert Query(".missing, .status.phase").values(POD) == ["Running"]


@pytest.mark.parametrize(
    "expression",
    [
        " | ".join(["[., .]"] * 60) + " | tojson",
        " | ".join(["(. + .)"] * 60),
        '"a" | ' + " | ".join(["(. + .)"] * 60),
        "[.[], .[]] | " * 40 + ".",
        " + ".join(["1"] * 5000),
        " // ".join(["null"] * 5000),
        " | ".join(["."] * 5000),
    ],
)
def test_costly_expression_ends_soon(expression: str) -> None:
    began = time.thread_time()
    assert "\n" not in complaint(expression, [1, 2])
    assert time.thread_time() - began < 20


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
_WORDS = """. .a .[] [ ] ( ) { } | , // == < and or not if then else end as $x ? .. try 1 "a" null - + * / % : ; map(
select( length keys add sort tojson fromjson flatten any to_entries "\\( join( test( contains( todate fromdate tonumber
first group_by( has( split( with_entries("""


@given(st.lists(st.sampled_from(_WORDS.split()), max_size=12).map(" ".join) | st.text(max_size=30), _JSON)
def test_no_expression_crashes(expression: str, data: Any) -> None:
    assert "\n" not in complaint(expression, data)


@given(_JSON, _JSON)
def test_any_two_values_compare(a: Any, b: Any) -> None:
    less, equal, greater = Query(".[0] < .[1], .[0] == .[1], .[0] > .[1]").outputs([a, b])
    assert less + equal + greater == 1
