"""CEL expressions: values, errors, costs."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.model import cel
from kubist.model.cel import DYN, INT, STRING, Environment, list_of, map_of, object_type

DYNAMIC = Environment({"self": DYN})
TRUE = [
    "1 + 2 * 3 == 7 && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1",
    "1.5 + 1.5 == 3.0 && 2u * 3u == 6u && 0x10 == 16",
    "'a' + \"b\" == 'ab' && r'\\d' == '\\\\d' && '\\u00e9' == 'é' && '''x\ny'''.size() == 3",
    "b'abc' == bytes('abc') && string(b'x') == 'x' && size(b'\\xff') == 1",
    "[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2] && !(4 in [1])",
    "{'a': 1}.a == 1 && {'a': 1}['a'] == 1 && 'a' in {'a': 1} && {1: 'x'}[1] == 'x'",
    "[1, 2, 3].all(x, x > 0) && [1, 2].exists(x, x == 2) && [1, 2].exists_one(x, x == 2)",
    "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6] && [1, 2].map(x, x > 1, x) == [2]",
    "{'a': 1, 'b': 2}.all(k, k in ['a', 'b']) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
    "[5, 6].all(i, v, v == i + 5) && [1, 2].transformList(i, v, i + v) == [1, 3]",
    "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && {'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}",
    "false && 1 / 0 > 0 == false || true",
    "(1 / 0 > 0 || true) && [0, 1].exists(x, 1 / x == 1)",
    "true ? 1 == 1 : 1 / 0 == 0",
    "int('5') == 5 && uint(5) == 5u && double('1.5') == 1.5 && string(1.5) == '1.5' && bool('true')",
    "type(1) == int && type('') == string && type([]) == list && type(null) == null_type",
    "1 < 2u && 1 < 1.5 && 2.0 > 1u && dyn(1) == dyn(1.0)",
    "timestamp('2024-02-29T12:30:00Z').getMonth() == 1 && timestamp('2024-02-29T23:00:00Z').getDate('+02:00') == 1",
    "timestamp('2024-01-01T00:00:00Z') + duration('36h') == timestamp('2024-01-02T12:00:00Z')",
    "duration('1h30m').getMinutes() == 90 && duration('90s') < duration('2m') && string(duration('1.5s')) == '1.5s'",
    "'tacocat'.substring(4) == 'cat' && 'tacocat'.indexOf('c') == 2 && 'a-b'.split('-') == ['a', 'b']",
    "['a', 'b'].join('-') == 'a-b' && ' x '.trim() == 'x' && 'Ab'.lowerAscii() == 'ab'",
    "'aa'.replace('a', 'b', 1) == 'ba'",
    "'%s %d %.1f %x'.format(['a', 1, 2.25, 255]) == 'a 1 2.2 ff' && strings.quote('a\"') == '\"a\\\\\"\"'",
    "'abc'.matches('^a.c$') && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'x'.find('y') == ''",
    "[1, 2, 3].sum() == 6 && [2, 1].min() == 1 && [1, 1, 2].isSorted() && [1, 2, 1].lastIndexOf(1) == 2",
    "[[1], [2]].flatten() == [1, 2] && [1, 1].distinct() == [1] && [3, 1].sort() == [1, 3] && lists.range(2) == [0, 1]",
    "[{'n': 2}, {'n': 1}].sortBy(e, e.n)[0].n == 1 && [1, 2, 3].slice(1, 2) == [2] && [1, 2].reverse() == [2, 1]",
    "sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
    "url('https://h:8/p?q=1').getPort() == '8' && url('https://h/p?q=1').getQuery()['q'] == ['1'] && !isURL('a b')",
    "quantity('1500m').compareTo(quantity('1.5')) == 0 && quantity('1Ki').asInteger() == 1024",
    "sign(quantity('-1')) == -1",
    "quantity('1').add(quantity('500m')).isGreaterThan(quantity('1')) && !isQuantity('x')",
    "ip('::1').isLoopback() && ip.isCanonical('10.0.0.1') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && string(cidr('10.0.0.0/8')) == '10.0.0.0/8' && !isIP('1.2')",
    "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && isSemver('v1.0', true) && semver('v01.1', true).major() == 1",
    "!format.dns1123Label().validate('ok').hasValue() && format.named('uuid').hasValue()",
    "optional.none().orValue(3) == 3 && {'a': 1}.?a.value() == 1 && !{'a': 1}[?'b'].hasValue()",
    "[1, 2][?5].or(optional.of(7)).value() == 7 && [?optional.none(), 1] == [1] && {?'k': optional.of(1)}.k == 1",
    "optional.of(2).optMap(x, x + 1).value() == 3 && optional.ofNonZeroValue('') == optional.none()",
    "has(self.a) && !has(self.b) && self.?b.orValue('d') == 'd' && self.a.b == 1",
]


@pytest.mark.parametrize("expression", TRUE)
def test_expression_is_true(expression: str) -> None:
    program = cel.compile(expression, DYNAMIC)
    assert program.evaluate({"self": {"a": {"b": 1}}})[0] is True


ERRORS = {
    "1 / 0 == 1": "division by zero",
    "self.x == 1": "no such key: x",
    "[1][3] == 1": "index out of bounds: 3",
    "9223372036854775807 + 1 > 0": "integer overflow",
    "self.a + 'x' == ''": "no such overload",
    "timestamp('x' + string(1)) == timestamp('2024-01-01T00:00:00Z')": "type conversion error",
    "'a'.substring(5) == ''": "index out of range",
    "optional.none().value() == 1": "optional.none() dereference",
    "quantity('x' + '') == quantity('1')": "quantities must match",
}


@pytest.mark.parametrize("expression", ERRORS)
def test_evaluation_fails(expression: str) -> None:
    program = cel.compile(expression, DYNAMIC)
    with pytest.raises(cel.EvaluationError, match=ERRORS[expression].replace("(", r"\(").replace(")", r"\)")):
        program.evaluate({"self": {"a": 1}})


TYPED = Environment(
    {
        "self": object_type("t", {"n": INT, "s": STRING, "l": list_of(INT), "m": map_of(STRING, STRING)}),
        "other": object_type("u", {"n": INT}),
    }
)
REFUSED = {
    "self.x == 1": "undefined field 'x'",
    "self.n == 'a'": "found no matching overload for '_==_'",
    "self.n + 1.5 > 2.0": "found no matching overload for '_+_'",
    "self == other": "found no matching overload for '_==_'",
    "self.s.nothing()": "undeclared reference to 'nothing'",
    "nobody": "undeclared reference to 'nobody'",
    "self.n.all(x, true)": "cannot be range of a comprehension",
    "[1, 'a'].size() == 2": "expected type 'int' but found 'string'",
    "self.s.matches('(')": "invalid matches argument",
    "duration('x') == duration('1s')": "invalid duration argument",
    "1 +": "Syntax error",
    "self.l.all(1, true)": "argument must be a simple name",
    "has(self)": "invalid argument to has",
    "for == 1": "reserved identifier: for",
    "'a' == 'b": "token recognition error",
    "99999999999999999999 > 1": "invalid int literal",
    f"{'9' * 5000} > 1": "invalid int literal",
    f"{'9' * 5000}u > 1u": "invalid uint literal",
    f"0x{'9' * 5000} > 1": "invalid int literal",
    "self.l.map(x, y, x)  == []": "undeclared reference to 'y'",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_compilation_fails(expression: str) -> None:
    with pytest.raises(cel.CompileError) as refused:
        cel.compile(expression, TYPED)
    assert REFUSED[expression] in refused.value.message


@pytest.mark.parametrize(
    "expression",
    [
        "int(self.s) > 1",
        "int('-' + self.s) > 1",
        "uint(self.s) > 1u",
        f"int('{'9' * 5000}') > 1",
        "'%.2000000000f'.format([1.0]) == ''",
        f"'%.{'9' * 5000}f'.format([1.0]) == ''",
    ],
)
def test_numbers_with_very_many_digits_are_errors(expression: str) -> None:
    with pytest.raises((cel.EvaluationError, cel.CompileError)):
        cel.compile(expression, TYPED).evaluate({"self": {"s": "9" * 5000}}, cel.PER_CALL_LIMIT)


def test_leading_zeros_of_numbers_are_ignored() -> None:
    zeros = "0" * 5000
    program = cel.compile(f"int('-{zeros}7') == -7 && '%.{zeros}1f'.format([0.25]) == '0.2'", TYPED)
    assert program.evaluate({}, cel.PER_CALL_LIMIT)[0] is True


def test_program_has_type_and_used_variables() -> None:
    program = cel.compile("self.l.map(x, x > 1)", TYPED)
    assert str(program.type) == "list(bool)" and program.uses == {"self"}
    assert str(cel.compile("self.m.?a", TYPED).type) == "optional_type(string)"


def test_evaluation_stops_at_its_budget() -> None:
    program = cel.compile("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", DYNAMIC)
    with pytest.raises(cel.CostExceeded):
        program.evaluate({"self": list(range(300))}, budget=10_000)


def test_estimate_is_not_below_the_actual_cost() -> None:
    program = cel.compile("self.l.all(x, self.l.exists(y, y == x)) && self.s.contains('abc')", TYPED)
    sizes: dict[tuple[str, ...], int] = {("self", "l"): 10, ("self", "s"): 100}
    most = program.cost(sizes.get).most
    _, cost = program.evaluate({"self": {"l": list(range(10)), "s": "x" * 97 + "abc"}})
    assert cost <= most < 2000


def test_environment_may_add_functions() -> None:
    overload = cel.Overload("twice_int", (INT,), INT, True)
    environment = Environment({}, {"twice": ([overload], lambda value: value * 2)})
    assert cel.compile("21.twice() == 42", environment).evaluate({})[0] is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(value=JSON)
def test_any_variables_give_a_value_or_an_evaluation_error(value: Any) -> None:
    for expression in [
        *TRUE[:12],
        "self == self",
        "self.a.b > 1",
        "size(self) > 1 ? self[0] == 1 : 'a' in self",
    ]:
        try:
            cel.compile(expression, DYNAMIC).evaluate({"self": value})
        except cel.EvaluationError:
            continue


@settings(max_examples=80, deadline=None)
@given(text=st.text(alphabet="self.a[0]+-*/'\"(){}?:,!<>=&|1 xin\\`", max_size=24))
def test_any_text_compiles_or_is_rejected(text: str) -> None:
    with contextlib.suppress(cel.CompileError):
        cel.compile(text, DYNAMIC)
