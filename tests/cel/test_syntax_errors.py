"""Syntax errors of expressions and patterns, in the words of the reference."""

from __future__ import annotations

import pytest

from kubist.model.cel import regex
from kubist.model.cel.errors import CompileError
from kubist.model.cel.parser import parse

OPERAND = "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
OPERAND += "STRING, BYTES, IDENTIFIER"
IN_LIST = OPERAND.replace("'['", "'[', ']'").replace("'.'", "'.', ','").replace("'!'", "'!', '?'")


def problems(expression: str) -> list[str]:
    """Column and message of each error."""
    with pytest.raises(CompileError) as caught:
        parse(expression)
    lines = caught.value.located(expression).split("\n")
    return [line.removeprefix("ERROR: <input>:1:") for line in lines if line.startswith("ERROR")]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a +", [f"4: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"]),
        ("1 +* 2", [f"4: Syntax error: extraneous input '*' expecting {{{OPERAND}}}"]),
        ("a b", ["3: Syntax error: extraneous input 'b' expecting <EOF>"]),
        ("a b c", ["3: Syntax error: mismatched input 'b' expecting <EOF>"]),
        ("foo(1", ["6: Syntax error: missing ')' at '<EOF>'"]),
        ("foo(1 2)", ["7: Syntax error: extraneous input '2' expecting ')'"]),
        ("[", [f"2: Syntax error: mismatched input '<EOF>' expecting {{{IN_LIST}}}"]),
        ("[1 2]", ["4: Syntax error: extraneous input '2' expecting {']', ','}"]),
        ("{1", ["3: Syntax error: mismatched input '<EOF>' expecting ':'"]),
        (
            "X{",
            [
                "3: Syntax error: mismatched input '<EOF>' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
            ],
        ),
        ("a.(", ["3: Syntax error: no viable alternative at input '.('"]),
        ("a.true", ["3: Syntax error: mismatched input 'true' expecting IDENTIFIER"]),
        ("a ? b c", ["7: Syntax error: missing ':' at 'c'"]),
        ("a ? (b : c", ["8: Syntax error: missing ')' at ':'"]),
        ("!", [f"2: Syntax error: extraneous input '<EOF>' expecting {{{OPERAND}}}"]),
        (
            "a = b",
            [
                "3: Syntax error: token recognition error at: '= '",
                "5: Syntax error: extraneous input 'b' expecting <EOF>",
            ],
        ),
        (
            r"'\z'",
            [
                r"1: Syntax error: token recognition error at: ''\z'",
                "4: Syntax error: token recognition error at: '''",
                f"5: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}",
            ],
        ),
        (
            "((a b)",
            [
                "5: Syntax error: extraneous input 'b' expecting ')'",
                "7: Syntax error: missing ')' at '<EOF>'",
            ],
        ),
        ("if (a) b", ["1: reserved identifier: if", "8: Syntax error: extraneous input 'b' expecting <EOF>"]),
        ("has(a", ["5: invalid argument to has() macro", "6: Syntax error: missing ')' at '<EOF>'"]),
    ],
)
def test_syntax_errors_are_reported_and_parsing_continues(expression: str, expected: list[str]) -> None:
    assert problems(expression) == expected


def test_empty_lists_and_maps_may_have_a_comma() -> None:
    for text in ("[,]", "{,}", "[1,]", "{1: 2,}"):
        parse(text)


def test_empty_expression_has_no_line_to_show() -> None:
    assert problems("") == [f"0: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"]


def test_marks_below_wide_characters_are_wide() -> None:
    with pytest.raises(CompileError) as caught:
        parse("'é'\t+")
    assert caught.value.located("'é'\t+").split("\n")[1:] == [" | 'é' +", " | .\uff0e...^"]


@pytest.mark.parametrize("character", ["+", "#", "\\"])
def test_errors_of_one_expression_are_limited(character: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(character * 50_000)
    assert len(caught.value.others) == 100
    assert len(caught.value.located(character * 50_000)) < 100_000


def test_shown_errors_of_one_expression_are_limited() -> None:
    others = tuple(CompileError("wrong", at) for at in range(1, 5_000))
    shown = CompileError("wrong", 0, others).located("a" * 5_000)
    assert shown.count("ERROR") == 101
    assert shown.endswith("\n4899 more errors were truncated")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("([", "missing closing ]: `[`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*x", "missing argument to repetition operator: `*`"),
        ("(?!x)y", "invalid or unsupported Perl syntax: `(?!`"),
        ("x(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_invalid_patterns_are_rejected_in_the_words_of_go(pattern: str, message: str) -> None:
    with pytest.raises(regex.RegexError) as caught:
        regex.compile(pattern)
    assert str(caught.value) == f"error parsing regexp: {message}"
