"""Durations: parsed, validated and written."""

from __future__ import annotations

import pytest

from kubist.model.meta import durations


@pytest.mark.parametrize(
    "text", ["0", "-0", "+5s", "-1s", "1h30m", "1.5s", ".5s", "5µs", "1.s", "9223372036s", f"0.{'1' * 9999}s"]
)
def test_valid_durations_have_no_error(text: str) -> None:
    durations.parse(text)


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
    with pytest.raises(ValueError, match="time: ") as caught:
        durations.parse(text)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1h30m", 5400 * 10**9),
        ("-1.5s", -15 * 10**8),
        ("2.5ns", 2),
        ("-9223372036854775808ns", -(1 << 63)),
    ],
)
def test_duration_is_parsed_to_nanoseconds(text: str, nanoseconds: int) -> None:
    assert durations.parse(text) == nanoseconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (3600, "1h0m0s"),
        (90.5, "1m30.5s"),
        (-1.25, "-1.25s"),
        (0.25, "250ms"),
        (1.5e-6, "1.5µs"),
        (3e-9, "3ns"),
    ],
)
def test_duration_is_written_as_go_does(seconds: float, text: str) -> None:
    assert durations.written(seconds) == text


def test_negative_duration_of_a_flag_is_invalid() -> None:
    assert durations.seconds("1m0.5s") == 60.5
    with pytest.raises(ValueError, match='invalid duration "-1s"'):
        durations.seconds("-1s")
