"""Validation of durations."""

from __future__ import annotations

import pytest

from kubist.meta.durations import wrong


@pytest.mark.parametrize(
    "text", ["0", "-0", "+5s", "-1s", "1h30m", "1.5s", ".5s", "5µs", "1.s", "9223372036s", f"0.{'1' * 9999}s"]
)
def test_valid_durations_have_no_error(text: str) -> None:
    assert wrong(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("x", 'time: invalid duration "x"'),
        (".s", 'time: invalid duration ".s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1s1", 'time: missing unit in duration "1s1"'),
        ("1.5.s", 'time: missing unit in duration "1.5.s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h 2m", 'time: unknown unit "h " in duration "1h 2m"'),
        ("99999999999h", 'time: invalid duration "99999999999h"'),
        ("9" * 9999 + "h", 'time: invalid duration "' + "9" * 9999 + 'h"'),
    ],
)
def test_invalid_durations_have_the_reference_message(text: str, why: str) -> None:
    assert wrong(text) == why
