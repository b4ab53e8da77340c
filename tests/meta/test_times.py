"""Times: parsing, formatting, and the messages for invalid ones."""

import re

import pytest

from kubist.model.meta import times


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05.999Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z"),
        ("2024-01-02T3:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times_are_written_in_utc_to_the_second(text: str, canonical: str | None) -> None:
    assert times.canonical_time(text) == canonical


def test_micro_times_have_six_digits() -> None:
    assert times.canonical_micro_time("2024-01-02T03:04:05.123456+01:00") == "2024-01-02T02:04:05.123456Z"
    for text in ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123Z", "2024-01-02T03:04:05.1234567Z"):
        with pytest.raises(ValueError, match="cannot parse"):
            times.canonical_micro_time(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("today", 'parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006"'),
        ("2024-01-02", 'parsing time "2024-01-02" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2024-02-30T00:00:00Z", 'parsing time "2024-02-30T00:00:00Z": day out of range'),
        ("2024-01-02T03:04:05Zx", 'parsing time "2024-01-02T03:04:05Zx": extra text: "x"'),
        ("2024-01-02T24:00:00Z", 'parsing time "2024-01-02T24:00:00Z": hour out of range'),
    ],
)
def test_invalid_time_has_the_reference_message(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        times.canonical_time(text)


def test_now_is_canonical() -> None:
    assert times.canonical_time(now := times.now()) == now
    assert times.canonical_micro_time(micro := times.now_micro()) == micro


@pytest.mark.parametrize("seconds", [0, -1, 951782400, 253402300799, -62135596800, -62167219200])
def test_formatting_and_parsing_are_inverse(seconds: int) -> None:
    assert times.parse_time(times.format_time(seconds)) == seconds
