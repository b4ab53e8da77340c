"""JSON bodies: Go's leniency and Go's error messages."""

from collections.abc import Callable
from typing import Any

import pytest

from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b'{"a":1', "unexpected end of JSON input"),
        (b"{}t", "invalid character 't' after top-level value"),
        (b"not json", "invalid character 'o' in literal null (expecting 'u')"),
        (b"{not json", "invalid character 'n' looking for beginning of object key string"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[" * 10_001, "invalid character '[' exceeded max depth"),
        (b'[1,"a",{},[], -2e3 ,x]', "invalid character 'x' looking for beginning of value"),
        (b'{"a":1,"b":{} ,"c":01}', "invalid character '1' after object key:value pair"),
        (b"[" + b"1," * 2500 + b"x]", "invalid character 'x' looking for beginning of value"),
        (b"{" + b'"a":1,' * 2500 + b'"b"}', "invalid character '}' after object key"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b'"a\nb"', "invalid character '\\n' in string literal"),
        (b"01", "invalid character '1' after top-level value"),
        (b"-a", "invalid character 'a' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"\x1f\x8b", "invalid character '\\x1f' looking for beginning of value"),
        (b"\0", "invalid character '\\x00' looking for beginning of value"),
        (b"1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        (b"[" * 500 + b"]" * 500, "exceeded max depth"),
        (b"[" * 50000 + b"]" * 50000, "invalid character '[' exceeded max depth"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "exceeded max depth"),
    ],
)
def test_refusals(body: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError) as error:
        json.parse(body)
    assert str(error.value) == complaint


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'"\xff\xfe"', "\ufffd\ufffd"),
        (b'"\\ud800x"', "\ufffdx"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800\\ud800"', "\\ud800\ufffd"),
        (b"12345678901234567890123", 1.2345678901234568e22),
        (b" null ", None),
    ],
)
def test_invalid_text_is_repaired_like_go_does(body: bytes, value: Any) -> None:
    assert json.parse(body) == value


def test_duplicate_keys_are_reported_without_a_schema() -> None:
    value, repeats = json.read_repeats(b'[{"op":"add","op" :"test"},{"a":{"b":1,"b":{"c":1,"c":2}}}]')
    assert repeats.duplicate(value) == [
        'duplicate field "[0].op"',
        'duplicate field "[1].a.b"',
        'duplicate field "[1].a.b.c"',
    ]
    assert value == [{"op": "test"}, {"a": {"b": {"c": 2}}}]
    value, repeats = json.read_repeats(b'{"a":": :","b":1}')
    assert (value, repeats.duplicate(value)) == ({"a": ": :", "b": 1}, [])


def test_kind_of_a_body() -> None:
    assert json.type_meta({"kind": "Pod"}) == ("", "Pod")
    assert json.type_meta(None) == ("", "")
    with pytest.raises(
        DecodeError, match="couldn't get version/kind; json parse error: json: cannot unmarshal array"
    ):
        json.type_meta([])
    with pytest.raises(DecodeError, match=r"number into Go struct field \.kind of type string"):
        json.type_meta({"kind": 1})


@pytest.mark.parametrize("read", [json.parse, json.read, json.read_repeats])
def test_syntax_error_is_reported_before_a_number_beyond_range(read: Callable[[bytes], Any]) -> None:
    with pytest.raises(DecodeError, match="invalid character '&' after object key"):
        read(b'{"a":1e400,"b"&1}')
    with pytest.raises(json.BeyondRange, match="cannot unmarshal number 1e400 into Go value of type float64"):
        read(b'{"a":1e400,"b":1}')
