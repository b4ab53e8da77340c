"""Label and field selectors: matching, and the messages for invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.model.meta.selectors import (
    ParseError,
    format_label_selector,
    go_label_selector,
    parse_field_selector,
    parse_label_selector,
)

MATCHES = [
    ("", {"a": "b"}, True),
    ("  ", None, True),
    ("a", {"a": ""}, True),
    ("a", None, False),
    ("!a", {"b": "c"}, True),
    ("! a", {"a": "c"}, False),
    ("a=b", {"a": "b"}, True),
    ("a = b , c", {"a": "b", "c": "d"}, True),
    ("a==b", {"a": "c"}, False),
    ("a=", {"a": ""}, True),
    ("a=", {}, False),
    ("a=,b", {"a": "", "b": "x"}, True),
    ("a!=b", {"a": "c"}, True),
    ("a!=b", {}, True),
    ("a!=b", {"a": "b"}, False),
    ("a in (b,c)", {"a": "c"}, True),
    ("a in (b,c)", {}, False),
    ("a in()", {"a": ""}, True),
    ("a in (,b)", {"a": ""}, True),
    ("a in (b,)", {"a": ""}, True),
    ("a in (b,,c)", {"a": ""}, True),
    ("a notin (b,c)", {"a": "d"}, True),
    ("a notin (b,c)", {}, True),
    ("a notin (b,c)", {"a": "b"}, False),
    ("in in (in, notin)", {"in": "notin"}, True),
    ("notin", {"notin": "x"}, True),
    ("a=in", {"a": "in"}, True),
    ("a>1", {"a": "2"}, True),
    ("a>1", {"a": "1"}, False),
    ("a<10", {"a": "9"}, True),
    ("a<10", {"a": "x"}, False),
    ("a<10", {"a": "99999999999999999999"}, False),
    ("a<10", {}, False),
    ("example.com/a=b", {"example.com/a": "b"}, True),
]


@pytest.mark.parametrize(("text", "labels", "matches"), MATCHES)
def test_label_selector_matches(text: str, labels: dict[str, str] | None, matches: bool) -> None:
    assert parse_label_selector(text).matches(labels) is matches


UNREADABLE = [
    ("=x", "found '=', expected: !, identifier, or 'end of string'"),
    ("a=b,", "found '', expected: identifier after ','"),
    ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ("!a=b", "found '=', expected: ',' or 'end of string'"),
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("a in b", "unable to parse requirement: found 'b' expected: '('"),
    ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
    ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
    ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
    ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
    ("a===b", "unable to parse requirement: found '=', expected: identifier"),
    ("!", "unable to parse requirement: found '', expected: identifier"),
    (
        "a>b",
        "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value "
        "must be an integer",
    ),
    ("/y", 'unable to parse requirement: <nil>: Invalid value: "/y": prefix part must be non-empty'),
    (
        "k=" + "v" * 64,
        f'unable to parse requirement: values[0][k]: Invalid value: "{"v" * 64}": must be no more than '
        "63 bytes",
    ),
]


@pytest.mark.parametrize(("text", "message"), UNREADABLE)
def test_invalid_label_selector_has_the_reference_message(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_label_selector(text)
    assert str(caught.value) == message


def test_both_errors_of_one_value_are_reported() -> None:
    with pytest.raises(
        ParseError, match=r"^unable to parse requirement: \[values\[0\]: .*, values\[0\]\[a\]: "
    ):
        parse_label_selector("a>-x")


def test_equalities_are_the_labels_every_match_has() -> None:
    assert parse_label_selector("a=1,b in (2),c in (3,4),d!=5,e").equalities == {"a": "1", "b": "2"}


def test_label_selector_text_is_sorted_by_key() -> None:
    assert str(parse_label_selector("z,b notin (d,c), !a,n>3")) == "!a,b notin (c,d),n>3,z"


FORMATS = [
    (None, ""),
    ({}, ""),
    ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    (
        {
            "matchLabels": {"m": ""},
            "matchExpressions": [
                {"key": "z", "operator": "Exists"},
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "NotIn", "values": ["q"]},
                {"key": "a", "operator": "DoesNotExist"},
            ],
        },
        "!a,c in (x,y),d notin (q),m=,z",
    ),
    ({"b": "2", "a": "1"}, "a=1,b=2"),
    ({"matchLabels": "x"}, "matchLabels=x"),
]


@pytest.mark.parametrize(("selector", "text"), FORMATS)
def test_selector_of_an_object_is_formatted_as_text(selector: dict[str, object] | None, text: str) -> None:
    assert format_label_selector(selector) == text


FIELDS = [
    ("", ()),
    (",,", ()),
    ("b=1,a!=2", (("a", "!=", "2"), ("b", "=", "1"))),
    ("a==1", (("a", "=", "1"),)),
    ("a=", (("a", "=", ""),)),
    ("=x", (("", "=", "x"),)),
    ("=,!=", ()),
    ("a = 1", (("a ", "=", " 1"),)),
    (r"a=x\,y\=z\\", (("a", "=", "x,y=z\\"),)),
    (r"a\=b", (("a\\", "=", "b"),)),
]


@pytest.mark.parametrize(("text", "requirements"), FIELDS)
def test_field_selector_requirements(text: str, requirements: tuple[tuple[str, str, str], ...]) -> None:
    assert parse_field_selector(text).requirements == requirements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_invalid_field_selector_has_the_reference_message(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_field_selector(text)
    assert str(caught.value) == message


def test_missing_field_matches_as_empty() -> None:
    assert parse_field_selector("a=,b!=x").matches({})
    assert not parse_field_selector("a!=").matches({})


@given(st.text(alphabet="ab=!<>(), \\\t\x00-_./in"))
def test_any_selector_text_is_parsed_or_rejected(text: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            selector = parse(text)
        except ParseError:
            continue
        assert str(parse(str(selector))) == str(selector)


def test_selector_is_shown_as_in_go() -> None:
    expression = {"key": "k", "operator": "In", "values": ["a", "b"]}
    assert go_label_selector({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [expression]}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
    )


def test_missing_selector_is_nil_as_in_go() -> None:
    assert go_label_selector(None) == "nil"
