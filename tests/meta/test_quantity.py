"""Quantities: kept, rewritten and rejected texts, and arithmetic."""

import pytest

from kubist.meta.quantity import FORMAT_WRONG, NUMERIC_WRONG, SUFFIX_WRONG, canonical_quantity, parse_quantity


@pytest.mark.parametrize(
    "text", ["0", "1", "1e9", "1E3", "+3", "5.", "1073741824", "129e6", "500m", "1Gi", "-1"]
)
def test_canonical_looking_quantity_is_kept(text: str) -> None:
    assert canonical_quantity(text) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5", "500m"),
        (".5", "500m"),
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("0.1Gi", "107374182400m"),
        ("1000000k", "1G"),
        ("1.5Gi", "1536Mi"),
        ("1e20", "100e18"),
        ("0Mi", "0"),
        ("-0.5", "-500m"),
        ("0.0000000001", "1n"),
        ("20Ei", "9223372036854775807"),
        ("1.0", "1"),
        ("100000000000000000000", "100E"),
    ],
)
def test_other_quantity_is_rewritten_canonically(text: str, canonical: str) -> None:
    assert canonical_quantity(text) == canonical
    assert canonical_quantity(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", FORMAT_WRONG),
        ("lots", FORMAT_WRONG),
        ("1x", FORMAT_WRONG),
        ("1 Gi", FORMAT_WRONG),
        ("1.2.3", FORMAT_WRONG),
        ("1ki", SUFFIX_WRONG),
        ("1K", SUFFIX_WRONG),
        ("1e", SUFFIX_WRONG),
        ("1e999999999", SUFFIX_WRONG),
        ("9" * 5000, NUMERIC_WRONG),
        ("9" * 1_500_000, NUMERIC_WRONG),
        ("0." + "0" * 1_500_000 + "1", NUMERIC_WRONG),
        ("1" + "k" * 1_500_000, SUFFIX_WRONG),
        ("1" + "x" * 1_500_000, FORMAT_WRONG),
    ],
    ids=lambda text: text[:20],
)
def test_invalid_quantity_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="quantit") as error:
        parse_quantity(text)
    assert str(error.value) == reason


def test_many_zeros_are_zero() -> None:
    assert canonical_quantity("0" * 1_500_000) == "0"


def test_quantities_compare_by_amount() -> None:
    assert parse_quantity("1Gi") == parse_quantity("1073741824")
    assert parse_quantity("999m") < parse_quantity("1")
    assert not parse_quantity("0")


def test_sum_has_the_format_of_its_first_nonzero_part() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1024Mi")) == "2Gi"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1") - parse_quantity("250m")) == "750m"
    assert str(-(parse_quantity("2") * 3)) == "-6"


def test_values_round_away_from_zero() -> None:
    assert parse_quantity("1500m").value() == 2
    assert parse_quantity("-1500m").value() == -2
    assert parse_quantity("1n").milli_value() == 1
    assert str(parse_quantity("1n").round_up(-3)) == "1m"
    assert parse_quantity("1Ei").milli_value() % 1000 != 0, "overflows as 64 bits do"
