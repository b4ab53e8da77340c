"""YAML 1.1: scalar resolution, rejections, and writing."""

from typing import Any

import pytest

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml

READ: list[tuple[str, Any]] = [
    ("", None),
    ("# nothing\n", None),
    ("a: y\nb: No\nc: on\nd: OFF\ne: True", {"a": True, "b": False, "c": True, "d": False, "e": True}),
    ("y: 1\nn: 2", {"true": 1, "false": 2}),
    ("0x1F: a\n010: b\n1.5: c", {"31": "a", "8": "b", "1.5": "c"}),
    ("a: 010\nb: 0x1F\nc: 0b11\nd: 1_000\ne: 08", {"a": 8, "b": 31, "c": 3, "d": 1000, "e": 8}),
    ("a: 80.0\nb: 1e3\nc: .5\nd: 1:30", {"a": 80, "b": 1000, "c": 0.5, "d": "1:30"}),
    ("a: 2001-01-01\nb: 2001-01-01T00:00:00Z", {"a": "2001-01-01", "b": "2001-01-01T00:00:00Z"}),
    ("a: !!binary YWJj\nb: !!str 5\nc: 'yes'", {"a": "abc", "b": "5", "c": "yes"}),
    ("a: ~\nb:\nc: ''", {"a": None, "b": None, "c": ""}),
    ("--- {a: 1}\n--- {b: 2}", {"a": 1}),
    ("a: &x {k: v}\nb: *x\nc: {<<: *x, l: w}", {"a": {"k": "v"}, "b": {"k": "v"}, "c": {"k": "v", "l": "w"}}),
    ("a: {<<: [{x: 1}, {z: 3}]}", {"a": {"x": 1, "z": 3}}),
    ('{"json": [1, {"too": null}]}', {"json": [1, {"too": None}]}),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_reading(text: str, value: Any) -> None:
    assert yaml.parse(text.encode()) == (value, [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x \u2029 y"}', "x\u2029y"),
        ('{"a": "x\x85y"}', "x y"),
        ('{"a": "x\ufeffy"}', "x\ufeffy"),
        ('{"a": "\\u2028\\u007f\\ufffe"}', "\u2028\x7f\ufffe"),
        ('{"a": "\\\\ud83d"}', "\\ud83d"),
        ('{"a":\n"\U0001f600"}', "\U0001f600"),
    ],
)
def test_json_is_read_as_yaml(text: str, value: str) -> None:
    assert yaml.parse(text.encode()).value == {"a": value}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": "\\ud83d\\ude00"}', "yaml: found invalid Unicode character escape code"),
        ('{"a": "\\\\\\uD83D\\uDE00"}', "yaml: found invalid Unicode character escape code"),
        ('{"a": "\x7f"}', "yaml: control characters are not allowed"),
        ('{"a": "\x80"}', "yaml: control characters are not allowed"),
        ('{"a": "\uffff"}', "yaml: control characters are not allowed"),
        ('{"a"\n:"v"}', "yaml: line 1: did not find expected ',' or '}'"),
    ],
)
def test_json_that_is_no_yaml_is_refused(text: str, complaint: str) -> None:
    """Clients in Python and Java write characters such as emoji as two escapes, which YAML does not have."""
    with pytest.raises(DecodeError) as error:
        yaml.parse(text.encode())
    assert str(error.value) == complaint


@pytest.mark.parametrize("text", ["b: 1\na: {d: 1, c: 2}", '{"b": 1, "a": {"d": 1, "c": 2}}'])
def test_keys_are_sorted(text: str) -> None:
    value = yaml.parse(text.encode()).value
    assert (list(value), list(value["a"])) == (["a", "b"], ["c", "d"])


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("a: 1\na: 2", ['line 2: key "a" already set in map']),
        ("a:\n  b: 1\n  b:\n    c: 1", ['line 4: key "b" already set in map']),
        ('{"a": 1,\n "a": 2}', ['line 2: key "a" already set in map']),
        ("c:\n  k: w\n  <<: {k: v}", ['line 3: key "k" already set in map']),
        ("1: a\n1: b", ["line 2: key 1 already set in map"]),
    ],
)
def test_duplicate_yaml_keys_are_reported_with_their_line(text: str, complaints: list[str]) -> None:
    assert yaml.parse(text.encode()).complaints == complaints


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: 1\nb: [", "yaml: line 2: did not find expected node content"),
        ('a: "\\/"', "yaml: found unknown escape character"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("? [a]\n: b", 'yaml: invalid map key: []interface {}{"a"}'),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: {<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: \0", "yaml: control characters are not allowed"),
        (BOMB, "yaml: document contains excessive aliasing"),
        ("[" * 100_000, "yaml: exceeded max depth of 240"),
        ("- " * 100_000, "yaml: exceeded max depth of 240"),
        ("a0: &a0 []\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300)), "exceeded max depth"),
    ],
)
def test_refusals(text: str, complaint: str) -> None:
    with pytest.raises(DecodeError) as error:
        yaml.parse(text.encode())
    assert str(error.value) == complaint


def test_writing() -> None:
    value: dict[str, Any] = {
        "k10": "010",
        "k2": ["a", {"b": []}],
        "bool": "yes",
        "lines": "a\nb\n",
        "empty": {},
        "none": None,
        "number": 1.5,
        "time": "2001-01-01",
        "text": "x: y",
    }
    text = (
        'bool: "yes"\n'
        "empty: {}\n"
        'k2:\n- a\n- b: []\nk10: "010"\n'
        "lines: |\n  a\n  b\n"
        "none: null\n"
        "number: 1.5\n"
        "text: 'x: y'\n"
        'time: "2001-01-01"\n'
    )
    assert yaml.dumps(value).decode() == text
    assert yaml.parse(yaml.dumps(value)).value == value
